//! Streams on cards: played ahead, beside the graph, and what that costs.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Server, Sound, eventually, wake_ups};

use super::{awaited, driver, far, server_on, xruns_and_cycles};

const RATE: usize = 48_000;
const LOOPBACK: [&str; 8] =
    ["--capture", "2", "--playback", "2", "--quantum", "256", "--periods", "3"];

/// Halves from 0 to 3, so that what `probe source` adds can be told from them: that is below a half
/// and a multiple of 2^-21. The first frame is not silent.
fn halves(frames: usize) -> Sound {
    let channel =
        |factor: usize| (0..frames).map(move |at| ((at + 2) * factor / 5 % 7) as f32 / 2.0);
    Sound::of(RATE as u32, &[channel(3).collect(), channel(4).collect()])
}

fn file(server: &Server, sound: &Sound) -> PathBuf {
    let path = server.directory().join("played.wav");
    sound.write(&path);
    path
}

/// Plays a sound as a stream.
pub fn play(server: &Server, sound: &Sound) -> Program {
    let path = file(server, sound);
    server.spawn_consort(&["play", &path.to_string_lossy()])
}

fn device(server: &Server) -> String {
    let status = server.consort_json(&["status"]);
    status["device"].as_str().expect("a state").to_owned()
}

/// Waits until the device is in this state, as `consort status` names it.
pub fn await_device(server: &Server, state: &str) {
    awaited("the device is in this state", || (device(server) == state).then_some(()));
}

/// Where the played sound begins in what was heard, and how many frames of it are the same.
fn heard(played: &[f32], heard: &[f32]) -> (usize, usize) {
    let begin = heard.iter().position(|sample| *sample != 0.0).expect("something is heard");
    let same = heard[begin..].iter().zip(played);
    (begin, same.take_while(|(heard, played)| heard == played).count())
}

#[test]
#[ignore = "in the virtual machine"]
fn a_file_is_heard_sample_for_sample() {
    let server = server_on("hw:1,0", &LOOPBACK);
    let recording = far::record(&server, 7);
    let played = halves(4 * RATE);
    play(&server, &played).finish().expect_success();
    let all = recording.finish();
    for (channel, played) in all.iter().zip(&played.channels) {
        let (begin, same) = heard(played, channel);
        assert_eq!(same, played.len(), "it differs after {same} frames");
        let rest = &channel[begin + same..];
        assert!(!rest.is_empty() && rest.iter().all(|sample| *sample == 0.0), "and then silence");
    }
    // The card is there for the graph again.
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    let heard = far::recorded(&server, "FLOAT_LE", "48000", 2);
    far::demand_consecutive(&heard, 80_000, 0);
}

#[test]
#[ignore = "in the virtual machine"]
fn what_a_card_captures_is_recorded_sample_for_sample() {
    const PLAYED: u32 = 3 * RATE as u32;
    let server = server_on("hw:1,0", &LOOPBACK);
    await_device(&server, "parked");
    let path = server.directory().join("take.wav");
    let recorder = server.spawn_consort(&["record", "--duration", "8", &path.to_string_lossy()]);
    await_device(&server, "cycling");
    far::play_numbers(&server, PLAYED).finish().expect_success();
    recorder.finish().expect_success();
    let recorded = Sound::read(&path);
    assert_eq!(recorded.channels[0].len(), 8 * RATE);
    check_numbers(&recorded.channels, PLAYED);
    assert_eq!(xruns_and_cycles(&server).0, 0);
    await_device(&server, "parked");
}

/// Asserts that two channels have all of the numbers that were played into the card.
#[track_caller]
fn check_numbers(channels: &[Vec<f32>], played: u32) {
    for (channel, sign) in channels.iter().zip([1.0, -1.0]) {
        let numbers: Vec<f32> =
            (1..=played).map(|number| sign * number as f32 / 2_097_152.0).collect();
        let (_, same) = heard(&numbers, channel);
        assert_eq!(same, numbers.len(), "it differs after {same} frames");
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn what_a_card_captures_is_the_default_source_of_pulseaudios_programs() {
    const PLAYED: u32 = 2 * RATE as u32;
    let raw = ["--raw", "--format=float32le", "--rate=48000", "--channels=2"];
    // Of PulseAudio, and of ALSA through Debian's plug-in.
    let alsa = ["-q", "-D", "pulse", "-t", "raw", "-f", "FLOAT_LE", "-r", "48000", "-c", "2"];
    let server = server_on("hw:1,0", &LOOPBACK);
    let _front_end = server.spawn_consort(&["pulse"]);
    let socket = server.directory().join("pulse/native");
    awaited("the front end listens", || socket.exists().then_some(()));
    for (program, arguments) in [("parec", &raw[..]), ("arecord", &alsa)] {
        let path = server.directory().join(program);
        let mut command = server.command(program);
        command.env("PULSE_SERVER", format!("unix:{}", socket.display()));
        command.args(arguments).arg(&path);
        let recorder = Program::start(command);
        await_device(&server, "cycling");
        far::play_numbers(&server, PLAYED).finish().expect_success();
        let enough = u64::from(PLAYED + 48_000) * 8;
        let is_there = || std::fs::metadata(&path).is_ok_and(|file| file.len() > enough);
        awaited("everything is recorded", || is_there().then_some(()));
        recorder.terminate();
        check_numbers(&far::channels(&path), PLAYED);
        await_device(&server, "parked");
    }
}

#[test]
#[ignore = "in the virtual machine"]
fn programs_of_the_graph_that_come_and_go_change_no_frame_of_a_player() {
    const TIMES: usize = 3;
    let server = server_on("hw:1,0", &LOOPBACK);
    let recording = far::record(&server, 25);
    let played = halves(40 * RATE);
    let player = play(&server, &played);
    await_device(&server, "deep");
    for _ in 0..TIMES {
        let source = server.probe(&["source", "joins"]);
        server.consort(&["connect", "joins:out", "system:playback_1"]).expect_success();
        server.await_cycles(40);
        source.terminate();
        eventually("it has left", || server.status().clients.is_empty().then_some(()));
        await_device(&server, "deep");
    }
    let xruns = server.status().xruns;
    let [left, right] = recording.finish();
    player.terminate();
    let (begin, same) = heard(&played.channels[1], &right);
    // It was recorded for some seconds after the last program had left.
    assert_eq!(same, right.len() - begin, "{xruns} xruns");
    let added: Vec<f32> =
        left[begin..].iter().zip(&played.channels[0]).map(|(all, own)| all - own).collect();
    let mut numbers = added.split(|sample| *sample == 0.0).filter(|run| !run.is_empty());
    for _ in 0..TIMES {
        let run = numbers.next().expect("the program is heard");
        let number = |sample: f32| (sample * 2_097_152.0) as u32;
        let is_next = |pair: &[f32]| number(pair[1]) == number(pair[0]) % (1 << 20) + 1;
        assert!(run.windows(2).all(is_next), "each frame after the other");
        assert_eq!(run.len() % 256, 0, "whole cycles");
    }
    assert!(numbers.next().is_none(), "once for each time");
}

/// Whether the kernel's side of the loopback card is open.
fn is_open() -> bool {
    let state = std::fs::read_to_string("/proc/asound/card1/pcm0p/sub0/status").expect("a card");
    state.trim() != "closed"
}

fn await_closed(server: &Server) {
    awaited("the card is closed", || (!is_open()).then_some(()));
    awaited("the status says so", || driver(server).contains("closed until").then_some(()));
}

#[test]
#[ignore = "in the virtual machine"]
fn a_card_on_which_nothing_plays_is_closed_and_opened_again() {
    let server = server_on("hw:1,0", &[&LOOPBACK[..], &["--suspend", "2"]].concat());
    assert!(is_open());
    await_closed(&server);
    let recording = far::record(&server, 6);
    let played = halves(2 * RATE);
    play(&server, &played).finish().expect_success();
    for (channel, played) in recording.finish().iter().zip(&played.channels) {
        let (_, same) = heard(played, channel);
        assert_eq!(same, played.len(), "it differs after {same} frames");
    }
    await_closed(&server);
    // A program of the graph opens it as well.
    let source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    awaited("the card is open", || is_open().then_some(()));
    let heard = far::recorded(&server, "FLOAT_LE", "48000", 2);
    far::demand_consecutive(&heard, 80_000, 0);
    assert_eq!(xruns_and_cycles(&server).0, 0);
    source.terminate();
    await_closed(&server);
    let log = server.stop();
    assert!(!log.stderr.contains("not there"), "{}", log.stderr);
}

/// How many interrupts sound cards have raised.
fn card_interrupts() -> u64 {
    let all = std::fs::read_to_string("/proc/interrupts").expect("interrupts");
    let lines = all.lines().filter(|line| line.contains("snd_hda"));
    let counts = |line: &str| -> u64 {
        line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()).sum()
    };
    lines.map(counts).sum()
}

#[test]
#[ignore = "in the virtual machine"]
fn a_player_on_an_hda_chip_wakes_three_times_a_second_and_raises_no_interrupt() {
    const SECONDS: u64 = 10;
    let mut server = server_on("hw:0", &["--capture", "0", "--quantum", "256", "--periods", "3"]);
    let player = play(&server, &halves(90 * RATE));
    await_device(&server, "deep");
    // The control thread polls for some seconds after a request.
    std::thread::sleep(Duration::from_secs(20));
    let processes = [server.program().id(), player.id()];
    let all = || processes.map(wake_ups).iter().sum::<u64>();
    let (before, interrupts) = (all(), card_interrupts());
    std::thread::sleep(Duration::from_secs(SECONDS));
    let (woken, raised) = (all() - before, card_interrupts() - interrupts);
    assert!(woken <= 3 * SECONDS, "{woken} wake-ups in {SECONDS} s");
    assert!(raised <= SECONDS, "{raised} interrupts in {SECONDS} s");
    let status = server.consort_json(&["status"]);
    let stream = &status["streams"][0];
    assert_eq!(stream["missed_frames"], 0, "{stream}");
    println!("{woken} wake-ups and {raised} interrupts in {SECONDS} s; {stream}");
    player.terminate();
}

#[test]
#[ignore = "in the virtual machine"]
fn a_server_whose_hda_chip_is_closed_does_not_wake() {
    const SECONDS: u64 = 10;
    let options = ["--capture", "0", "--quantum", "256", "--periods", "3", "--suspend", "2"];
    let mut server = server_on("hw:0", &options);
    play(&server, &halves(2 * RATE)).finish().expect_success();
    awaited("the card is closed", || driver(&server).contains("closed until").then_some(()));
    let process = server.program().id();
    awaited("the timeouts of the last events have passed", || {
        let before = wake_ups(process);
        std::thread::sleep(Duration::from_secs(2));
        (wake_ups(process) == before).then_some(())
    });
    let (before, interrupts) = (wake_ups(process), card_interrupts());
    std::thread::sleep(Duration::from_secs(SECONDS));
    let (woken, raised) = (wake_ups(process) - before, card_interrupts() - interrupts);
    assert_eq!((woken, raised), (0, 0), "wake-ups and interrupts in {SECONDS} s");
    // It is there for the next one.
    play(&server, &halves(RATE)).finish().expect_success();
}

/// What a player plays on the right channel alone.
fn on_the_right(frames: usize) -> Sound {
    let right = halves(frames).channels.remove(1);
    Sound::of(RATE as u32, &[vec![0.0; frames], right])
}

/// Asserts that each frame of a program of the graph follows the one before.
#[track_caller]
fn demand_no_gap(heard: &[f32]) {
    let begin = heard.iter().position(|sample| *sample != 0.0).expect("it is heard");
    let gaps = far::gaps(&heard[begin..]);
    for far::Gap { at, silent, missing } in &gaps {
        println!("frame {at}: {silent} frames of silence, {missing} of the program are missing");
    }
    assert!(gaps.is_empty(), "{} gaps", gaps.len());
    assert!(heard.len() - begin > 4 * RATE, "for the whole time");
    assert!(heard.last() != Some(&0.0), "to the end");
}

fn players_come_and_go_beside_a_program(options: &[&str]) {
    const TIMES: usize = 3;
    let server = server_on("hw:1,0", options);
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    let recording = far::record(&server, 12);
    std::thread::sleep(Duration::from_millis(1500));
    let played = on_the_right(RATE);
    for _ in 0..TIMES {
        play(&server, &played).finish().expect_success();
        std::thread::sleep(Duration::from_millis(700));
    }
    let [left, right] = recording.finish();
    demand_no_gap(&left);
    let mut rest = &right[..];
    for _ in 0..TIMES {
        let (begin, same) = heard(&played.channels[1], rest);
        assert_eq!(same, RATE, "each frame of a player");
        rest = &rest[begin + same..];
    }
    assert!(rest.iter().all(|sample| *sample == 0.0), "and no more");
    assert_eq!(xruns_and_cycles(&server).0, 0);
}

#[test]
#[ignore = "in the virtual machine"]
fn players_that_come_and_go_change_no_frame_of_a_program_of_the_graph() {
    players_come_and_go_beside_a_program(&LOOPBACK);
}

/// Where each cycle's output is written in it.
#[test]
#[ignore = "in the virtual machine"]
fn players_that_come_and_go_change_no_frame_in_sync_mode() {
    players_come_and_go_beside_a_program(&[&LOOPBACK[..], &["--sync"]].concat());
}

#[test]
#[ignore = "in the virtual machine"]
fn a_player_that_came_beside_a_program_of_the_graph_goes_on_without_it() {
    let server = server_on("hw:1,0", &LOOPBACK);
    let source = server.probe(&["source", "first"]);
    server.consort(&["connect", "first:out", "system:playback_1"]).expect_success();
    let recording = far::record(&server, 20);
    let played = on_the_right(40 * RATE);
    let player = play(&server, &played);
    server.await_cycles(200);
    source.terminate();
    await_device(&server, "deep");
    std::thread::sleep(Duration::from_secs(2));
    let again = server.probe(&["source", "second"]);
    server.consort(&["connect", "second:out", "system:playback_1"]).expect_success();
    server.await_cycles(200);
    again.terminate();
    await_device(&server, "deep");
    let [left, right] = recording.finish();
    player.terminate();
    let (begin, same) = heard(&played.channels[1], &right);
    assert_eq!(same, right.len() - begin, "a gap after {same} frames");
    let runs = left.split(|sample| *sample == 0.0).filter(|run| !run.is_empty());
    assert_eq!(runs.count(), 2, "once for each program");
}

/// How many frames the loopback card's buffer holds; `None`: it is closed.
fn buffer_frames() -> Option<usize> {
    let setup = std::fs::read_to_string("/proc/asound/card1/pcm0p/sub0/hw_params").expect("a card");
    setup.lines().find_map(|line| line.strip_prefix("buffer_size: ")?.parse().ok())
}

#[test]
#[ignore = "in the virtual machine"]
fn a_player_that_came_beside_a_program_is_rendered_far_ahead_after_a_pause_in_its_music() {
    const PAUSE: std::ops::Range<usize> = 6 * RATE..7 * RATE;
    let server = server_on("hw:1,0", &LOOPBACK);
    let source = server.probe(&["source", "first"]);
    server.consort(&["connect", "first:out", "system:playback_1"]).expect_success();
    let recording = far::record(&server, 15);
    let mut played = on_the_right(10 * RATE);
    played.channels[1][PAUSE].fill(0.0);
    let player = play(&server, &played);
    server.await_cycles(200);
    source.terminate();
    await_device(&server, "deep");
    let before = buffer_frames().expect("it is open");
    awaited("the card is opened for streams", || buffer_frames().filter(|now| *now > 4 * before));
    player.finish().expect_success();
    let [_, right] = recording.finish();
    let (begin, same) = heard(&played.channels[1], &right);
    assert!(same >= PAUSE.end, "each frame before the pause is over: {same}");
    let rest = &right[begin + PAUSE.end..];
    let (late, same) = heard(&played.channels[1][PAUSE.end..], rest);
    assert_eq!(same, played.channels[1].len() - PAUSE.end, "and each frame after it");
    assert!(0 < late && late < RATE / 2, "while the card was opened: {late} frames");
}

#[test]
#[ignore = "in the virtual machine"]
fn what_came_beside_a_program_of_the_graph_ends_with_its_last_frame() {
    let server = server_on("hw:1,0", &LOOPBACK);
    let source = server.probe(&["source", "first"]);
    server.consort(&["connect", "first:out", "system:playback_1"]).expect_success();
    let recording = far::record(&server, 10);
    let played = on_the_right(4 * RATE);
    let player = play(&server, &played);
    server.await_cycles(200);
    source.terminate();
    player.finish().expect_success();
    let [_, right] = recording.finish();
    let (begin, same) = heard(&played.channels[1], &right);
    assert_eq!(same, 4 * RATE, "each frame");
    let rest = &right[begin + same..];
    let more = rest.iter().filter(|sample| **sample != 0.0).count();
    assert!(!rest.is_empty() && more == 0, "and then silence: {more} frames are not");
}
