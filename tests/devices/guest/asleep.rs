//! The machine sleeps and wakes: what played goes on by itself, where it was.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::stream::{PlaybackOptions, RingSamples, Samples};
use harness::{Program, Server, Sound};
use sys::clock::now_ns;
use sys::machine_sleep::MachineSleep;

use super::streams::await_device;
use super::{awaited, far, server_on, xruns_and_cycles};

const RATE: usize = 48_000;
const QUANTUM: u64 = 256;
const LOOPBACK: [&str; 8] =
    ["--capture", "2", "--playback", "2", "--quantum", "256", "--periods", "3"];
/// The position of the loopback card moves by what a tick of the kernel lasts, at both ends.
const TICKS: i64 = 2 * RATE as i64 / 250;
/// The card's other end sleeps some milliseconds before this one, and does not record these.
const EARLIER: i64 = RATE as i64 / 20;

/// Has the machine sleep for two seconds. All devices and `CLOCK_MONOTONIC` are suspended as for
/// any other sleep; only the processor waits instead of being switched off, because nothing wakes
/// it in this machine.
fn sleep() {
    let mut watch = MachineSleep::watch().expect("a watch");
    for (file, what) in [
        ("/sys/module/suspend/parameters/pm_test_delay", "2"),
        ("/sys/power/pm_test", "core"),
        ("/sys/power/state", "mem"),
    ] {
        std::fs::write(file, what).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    let slept_ns = watch.take().expect("it has slept");
    println!("slept for {} ms", slept_ns / 1_000_000);
}

/// Frames of which each is another number, as those of `probe source`.
fn numbers(frames: usize) -> Sound {
    let channel = |sign: f32| (1..=frames).map(|frame| sign * frame as f32 / 2_097_152.0).collect();
    Sound::of(RATE as u32, &[channel(1.0), channel(-1.0)])
}

fn file(server: &Server, sound: &Sound) -> PathBuf {
    let path = server.directory().join("played.wav");
    sound.write(&path);
    path
}

/// A player of these numbers.
fn play(server: &Server, frames: usize) -> Program {
    let path = file(server, &numbers(frames));
    server.spawn_consort(&["play", &path.to_string_lossy()])
}

fn pass(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

/// Asserts that numbered frames were heard in their order, each once, but for a pause where the
/// machine slept. Returns how many frames the pause lasts.
#[track_caller]
fn demand_one_pause(heard: &[f32], missing_frames: i64) -> usize {
    let gaps = far::gaps(heard);
    let [gap] = &gaps[..] else { panic!("{} gaps: {gaps:?}", gaps.len()) };
    // Less than none: frames were heard again.
    let missing = if gap.missing < 1 << 19 { gap.missing } else { gap.missing - (1 << 20) };
    println!("{missing} frames are missing, {} are silent", gap.silent);
    assert!((-TICKS..=missing_frames).contains(&missing), "{missing} frames are missing");
    gap.silent
}

/// Ends a server, and asserts that its log says once that the machine slept.
#[track_caller]
fn demand_report(server: Server) {
    let log = server.stop().stderr;
    let reports = log.lines().filter(|line| line.contains("the machine slept for "));
    assert_eq!(reports.count(), 1, "{log}");
}

#[test]
#[ignore = "in the virtual machine"]
fn a_player_goes_on_at_once_with_the_frame_that_follows() {
    let server = server_on("hw:1,0", &LOOPBACK);
    let recording = far::record(&server, 12);
    let player = play(&server, 9 * RATE);
    await_device(&server, "deep");
    pass(3);
    sleep();
    player.finish().expect_success();
    let [left, _] = recording.finish();
    let silent = demand_one_pause(&left, EARLIER);
    assert!(silent < RATE / 4, "the pause is as long as what was rendered ahead: {silent}");
    let last = left.iter().rev().find(|sample| **sample != 0.0);
    assert_eq!(last, Some(&(9.0 * RATE as f32 / 2_097_152.0)), "to its end");
    demand_report(server);
}

/// The card is open and prepared while the machine sleeps.
#[test]
#[ignore = "in the virtual machine"]
fn a_player_that_holds_begins_at_once_when_it_goes_on() {
    let server = server_on("hw:1,0", &[&LOOPBACK[..], &["--suspend", "0"]].concat());
    let connection = server.stream_connection();
    let stream = connection.play(PlaybackOptions {
        program: "by hand".into(),
        name: "sound".into(),
        device: None,
        channels: vec![0, 1],
        depth_frames: 2 * RATE as u32,
        samples: RingSamples::Planes,
    });
    let mut stream = stream.expect("a stream");
    let sound = numbers(RATE);
    let planes: Vec<&[f32]> = sound.channels.iter().map(Vec::as_slice).collect();
    assert_eq!(stream.writer_mut().write(Samples::Planar(&planes)), RATE);
    stream.run().expect("it runs");
    stream.call().expect("the device is called");
    std::thread::sleep(Duration::from_millis(200));
    stream.hold().expect("it holds");
    stream.call().expect("the device is called");
    await_device(&server, "parked");
    let before = stream.heard(now_ns());
    assert!((1..RATE as u64 / 2).contains(&before), "it has more to play: {before}");
    sleep();
    stream.run().expect("it runs");
    stream.call().expect("the device is called");
    let begin = Instant::now();
    awaited("it is heard", || (stream.heard(now_ns()) > before + 480).then_some(()));
    assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
}

#[test]
#[ignore = "in the virtual machine"]
fn a_program_of_the_graph_and_a_player_beside_it_go_on_in_cycles() {
    let server = server_on("hw:1,0", &LOOPBACK);
    let _source = server.probe(&["source", "numbers"]);
    server.consort(&["connect", "numbers:out", "system:playback_1"]).expect_success();
    let recording = far::record(&server, 8);
    server.await_cycles(400);
    sleep();
    server.await_cycles(200);
    let [left, _] = recording.finish();
    let begin = left.iter().position(|sample| *sample != 0.0).expect("it is heard");
    demand_one_pause(&left[begin..], RATE as i64);

    let player = play(&server, 5 * RATE);
    server.await_cycles(200);
    sleep();
    player.finish().expect_success();
    let (xruns, _) = xruns_and_cycles(&server);
    server.await_cycles(400);
    assert_eq!(xruns_and_cycles(&server).0, xruns, "it is in time again");
    assert!(xruns > 0, "what was lost is counted");
}

#[test]
#[ignore = "in the virtual machine"]
fn a_recorder_has_the_length_that_was_asked_for() {
    const PLAYED: usize = 5 * RATE;
    let server = server_on("hw:1,0", &LOOPBACK);
    await_device(&server, "parked");
    let path = server.directory().join("take.wav");
    let recorder = server.spawn_consort(&["record", "--duration", "8", &path.to_string_lossy()]);
    await_device(&server, "cycling");
    let player = far::play_numbers(&server, PLAYED as u32);
    pass(2);
    sleep();
    player.finish();
    recorder.finish().expect_success();
    let recorded = Sound::read(&path);
    assert_eq!(recorded.channels[0].len(), 8 * RATE);
    let last = PLAYED as f32 / 2_097_152.0;
    let end = recorded.channels[0].iter().position(|sample| *sample == last);
    // What the card's other end had in its memory follows.
    demand_one_pause(&recorded.channels[0][..end.expect("it was recorded to its end")], EARLIER);
    demand_report(server);
}

#[test]
#[ignore = "in the virtual machine"]
fn programs_on_a_server_without_a_card_go_on_without_a_burst() {
    let server = Server::start(&["--driver", "timer", "--quantum", "256"]);
    let _front_end = server.spawn_consort(&["pulse"]);
    let socket = server.directory().join("pulse/native");
    awaited("the front end listens", || socket.exists().then_some(()));
    let _source = server.probe(&["source", "numbers"]);
    let path = file(&server, &numbers(5 * RATE));
    let player = paplay(&server, &socket, &path);
    server.await_cycles(200);
    let (begin, (_, before)) = (Instant::now(), xruns_and_cycles(&server));
    sleep();
    let (_, after) = xruns_and_cycles(&server);
    let due = begin.elapsed().as_nanos() as u64 * RATE as u64 / 1_000_000_000 / QUANTUM;
    assert!(after - before <= due + 4, "{} cycles in the time of {due}", after - before);
    server.await_cycles(200);
    player.finish().expect_success();
    demand_report(server);
}

/// A player of PulseAudio's.
fn paplay(server: &Server, socket: &Path, file: &Path) -> Program {
    let mut command = server.command("paplay");
    command.env("PULSE_SERVER", format!("unix:{}", socket.display())).arg(file);
    Program::start(command)
}

fn goes_on_upon(card: &str, options: &[&str]) {
    let server = server_on(card, options);
    let player = play(&server, 7 * RATE);
    await_device(&server, "deep");
    pass(2);
    let begin = Instant::now();
    sleep();
    let status = server.consort_json(&["status"]);
    assert_eq!(status["streams"][0]["plays"], true, "{status}");
    player.finish().expect_success();
    // What was queued is not waited for.
    assert!(begin.elapsed() < Duration::from_millis(7500), "{:?}", begin.elapsed());
    let _source = server.probe(&["source", "numbers"]);
    server.consort(&["connect", "numbers:out", "system:playback_1"]).expect_success();
    server.await_cycles(200);
    sleep();
    server.await_cycles(200);
    assert!(!server.status().driver.contains("not there"), "{}", server.status().driver);
}

#[test]
#[ignore = "in the virtual machine"]
fn an_hda_chip_plays_on() {
    goes_on_upon("hw:0", &["--capture", "0", "--quantum", "256", "--periods", "3"]);
}

#[test]
#[ignore = "in the virtual machine"]
fn a_usb_card_plays_on() {
    goes_on_upon("hw:9", &["--quantum", "256", "--periods", "3"]);
}
