//! A card beside the one that drives, as a device for streams. The dummy card drives.

mod microphone;
mod mixer;
mod pulled;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use harness::{Finished, Program, Server, Sound};

use super::{awaited, far, has_card, monitor, pull, server_on};

const RATE: usize = 48_000;
const STEREO: [&str; 4] = ["--capture", "2", "--playback", "2"];

/// A server that the dummy card drives, with another card as the device `second`.
fn beside(card: &str) -> Server {
    let server = server_on("hw:2,0", &[&STEREO[..], &["--suspend", "1"]].concat());
    add(&server, card).expect_success();
    server
}

fn add(server: &Server, card: &str) -> Finished {
    let channels = if card == "hw:9" { &[][..] } else { &STEREO };
    let named = ["device", "add", card, "--streams", "--name", "second"];
    server.consort(&[&named[..], channels].concat())
}

fn state(server: &Server) -> Option<String> {
    let status = server.consort_json(&["status"]);
    let devices = status["further_devices"].as_array().expect("a list");
    let second = devices.iter().find(|device| device["name"] == "second")?;
    Some(second["state"].as_str().expect("a state").to_owned())
}

fn await_state(server: &Server, wanted: &str) {
    awaited("it is in this state", || (state(server)? == wanted).then_some(()));
}

/// Whether the kernel's side of a card is open, in any direction.
fn is_open(card: u32) -> bool {
    ["p", "c"].into_iter().any(|direction| is_open_for(card, direction))
}

/// Whether it is open for playback (`p`) or capture (`c`).
fn is_open_for(card: u32, direction: &str) -> bool {
    let path = format!("/proc/asound/card{card}/pcm0{direction}/sub0/status");
    std::fs::read_to_string(path).is_ok_and(|status| status.trim() != "closed")
}

fn await_closed(card: u32) {
    awaited("it is closed", || (!is_open(card)).then_some(()));
}

/// Values of which no two are the same, so that a place in them is found.
fn numbers(frames: usize) -> Sound {
    let channel = |sign: f32| {
        (1..=frames).map(move |frame| sign * frame as f32 / 2_097_152.0).collect::<Vec<f32>>()
    };
    Sound::of(RATE as u32, &[channel(1.0), channel(-1.0)])
}

fn file(server: &Server, sound: &Sound) -> PathBuf {
    let path = server.directory().join("played.wav");
    sound.write(&path);
    path
}

/// The frames of a sound that were heard, from the first one that is not faded in.
fn heard_from(sound: &Sound, heard: &[f32]) -> usize {
    let all = &sound.channels[0];
    let place = |sample: &f32| {
        let frame = (sample * 2_097_152.0).round() as usize;
        (frame > 0 && all.get(frame - 1) == Some(sample)).then(|| frame - 1)
    };
    // A faded sample is another one's value by chance only.
    let is_run = |at: &usize| {
        let Some(first) = place(&heard[*at]) else { return false };
        let run = heard[*at..].iter().zip(&all[first..]).take(2000);
        run.clone().count() == 2000 && run.into_iter().all(|(heard, played)| heard == played)
    };
    let begin = (0..heard.len()).find(is_run).expect("it is heard");
    let first = place(&heard[begin]).expect("a frame");
    let same = heard[begin..].iter().zip(&all[first..]).take_while(|(one, other)| one == other);
    assert_eq!(same.count(), all.len() - first, "all the rest of it");
    first
}

#[test]
#[ignore = "in the virtual machine"]
fn a_file_is_heard_there_sample_for_sample_and_the_card_is_closed_when_nothing_plays() {
    let server = beside("hw:1,0");
    await_closed(1);
    let path = file(&server, &numbers(4 * RATE));
    for _ in 0..2 {
        let recording = far::record(&server, 7);
        let player = server.spawn_consort(&["play", "--device", "second", &path.to_string_lossy()]);
        await_state(&server, "deep");
        player.finish().expect_success();
        let [left, right] = recording.finish();
        assert_eq!(heard_from(&numbers(4 * RATE), &left), 0);
        assert!(left.iter().zip(&right).all(|(left, right)| *left == -*right));
        await_closed(1);
    }
    let refused = server.consort(&["driver", "alsa", "--device", "hw:1,0"]);
    assert!(refused.stderr.contains("consort device remove second"), "{}", refused.stderr);
    let drives = server.consort(&["device", "add", "hw:2", "--streams"]);
    assert!(drives.stderr.contains("drives the graph"), "{}", drives.stderr);
    server.consort(&["device", "remove", "second"]).expect_success();
    awaited("it can be added again", || add(&server, "hw:1,0").code.filter(|code| *code == 0));
}

#[test]
#[ignore = "in the virtual machine"]
fn a_stream_moves_there_and_goes_on_where_it_left() {
    let server = beside("hw:1,0");
    let path = file(&server, &numbers(10 * RATE));
    let player = server.spawn_consort(&["play", &path.to_string_lossy()]);
    awaited("it plays", || {
        let status = server.consort_json(&["status"]);
        (status["streams"][0]["plays"] == true).then_some(())
    });
    let recording = far::record(&server, 14);
    std::thread::sleep(std::time::Duration::from_secs(2));
    server.consort(&["move", "consort play", "second"]).expect_success();
    player.finish().expect_success();
    let [left, _] = recording.finish();
    let first = heard_from(&numbers(10 * RATE), &left);
    assert!(first > RATE, "the beginning was heard elsewhere: {first}");
}

#[test]
#[ignore = "in the virtual machine"]
fn what_it_captures_is_recorded_there_sample_for_sample() {
    is_recorded_sample_for_sample(&beside("hw:1,0"));
}

/// Records twice what the loopback card captures as the device `second`.
fn is_recorded_sample_for_sample(server: &Server) {
    const PLAYED: usize = 3 * RATE;
    await_closed(1);
    awaited("the graph rests", || {
        (server.consort_json(&["status"])["device"] == "parked").then_some(())
    });
    let cycles = server.status().cycles;
    for _ in 0..2 {
        let path = server.directory().join("take.wav");
        let words = ["record", "--device", "second", "--duration", "8"];
        let recorder = server.spawn_consort(&[&words[..], &[&path.to_string_lossy()]].concat());
        await_state(server, "cycling");
        far::play_numbers(server, PLAYED as u32).finish().expect_success();
        recorder.finish().expect_success();
        let recorded = Sound::read(&path);
        assert_eq!(recorded.channels[0].len(), 8 * RATE);
        for (channel, played) in recorded.channels.iter().zip(&numbers(PLAYED).channels) {
            let begin = channel.iter().position(|sample| *sample != 0.0).expect("it is heard");
            let same = channel[begin..].iter().zip(played).take_while(|(one, other)| one == other);
            assert_eq!(same.count(), PLAYED);
        }
        await_closed(1);
    }
    assert_eq!(server.status().cycles, cycles, "the graph rests");
}

/// A program of PulseAudio's.
fn pulse(server: &Server, program: &str, arguments: &[&str]) -> Program {
    let mut command = server.command(program);
    let socket = server.directory().join("pulse/native");
    command.env("PULSE_SERVER", format!("unix:{}", socket.display())).args(arguments);
    Program::start(command)
}

/// The words of each line that `pactl list short` prints.
fn listed(server: &Server, what: &str) -> Vec<Vec<String>> {
    let text = pulse(server, "pactl", &["list", "short", what]).finish().expect_success().stdout;
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn names(server: &Server, what: &str) -> Vec<String> {
    listed(server, what).into_iter().map(|words| words[1].clone()).collect()
}

fn with_front_end(card: &str) -> (Server, Program) {
    let server = beside(card);
    let front_end = front_end_of(&server);
    (server, front_end)
}

fn front_end_of(server: &Server) -> Program {
    let front_end = server.spawn_consort(&["pulse"]);
    let socket = server.directory().join("pulse/native");
    // The file may be there from one before.
    awaited("the front end listens", || UnixStream::connect(&socket).ok().map(drop));
    front_end
}

#[test]
#[ignore = "in the virtual machine"]
fn it_is_a_sink_and_a_source_of_pulseaudios_programs() {
    const PLAYED: usize = 3 * RATE;
    let (server, _front_end) = with_front_end("hw:1,0");
    assert_eq!(names(&server, "sinks"), ["consort", "second"]);
    let sources = ["consort.monitor", "consort.capture", "second.monitor", "second.capture"];
    assert_eq!(names(&server, "sources"), sources);
    let path = file(&server, &numbers(PLAYED));
    let recording = far::record(&server, 7);
    let player = pulse(&server, "paplay", &["--device=second", &path.to_string_lossy()]);
    player.finish().expect_success();
    let [left, _] = recording.finish();
    assert_eq!(heard_from(&numbers(PLAYED), &left), 0);
    is_recorded_by_parec(&server);
}

/// Records what the loopback card captures as the source `second.capture`.
fn is_recorded_by_parec(server: &Server) {
    const PLAYED: usize = 3 * RATE;
    let take = server.directory().join("take.raw");
    let recorder = parec(server, &take);
    await_state(server, "cycling");
    far::play_numbers(server, PLAYED as u32).finish().expect_success();
    await_frames(&take, PLAYED + RATE);
    recorder.terminate();
    let [left, _] = far::channels(&take);
    let begin = left.iter().position(|sample| *sample != 0.0).expect("it is heard");
    assert_eq!(left[begin..begin + PLAYED], numbers(PLAYED).channels[0]);
    await_closed(1);
}

/// A recorder of the source `second.capture`.
fn parec(server: &Server, take: &Path) -> Program {
    let raw = ["--raw", "--format=float32le", "--rate=48000", "--channels=2"];
    let device = ["--device=second.capture", &take.to_string_lossy()];
    pulse(server, "parec", &[&raw[..], &device].concat())
}

/// Waits until a recording has more frames than this.
fn await_frames(take: &Path, frames: usize) {
    let is_there = || std::fs::metadata(take).is_ok_and(|file| file.len() > frames as u64 * 8);
    awaited("everything is recorded", || is_there().then_some(()));
}

#[test]
#[ignore = "in the virtual machine"]
fn streams_of_a_card_that_is_pulled_out_go_on_at_the_one_that_drives() {
    let (server, _front_end) = with_front_end("hw:9");
    let path = file(&server, &Sound::of(RATE as u32, &vec![vec![0.25; 120 * RATE]; 2]));
    let player = pulse(&server, "paplay", &["--device=second", &path.to_string_lossy()]);
    await_state(&server, "deep");
    pulse(&server, "pactl", &["set-sink-volume", "second", "50%"]).finish().expect_success();
    let sink_of = |name: &str| {
        let sinks = listed(&server, "sinks");
        sinks.into_iter().find(|words| words[1] == name).map(|words| words[0].clone())
    };
    let plays_on = || listed(&server, "sink-inputs").first().map(|words| words[1].clone());
    let first = sink_of("second").expect("a sink");
    assert_eq!(plays_on(), Some(first.clone()));
    pull("usbsnd", 9);
    awaited("the sink is gone", || (names(&server, "sinks") == ["consort"]).then_some(()));
    assert_eq!(plays_on(), sink_of("consort"), "the program plays on");
    assert_eq!(state(&server), None);
    monitor(&["device_add", "usb-audio,id=usbsnd,bus=xhci.0,audiodev=usb"]);
    awaited("the kernel has it again", || has_card(9).then_some(()));
    awaited("the sink is back", || sink_of("second"));
    let second = sink_of("second").expect("a sink");
    assert_ne!(second, first, "another sink");
    let volume = pulse(&server, "pactl", &["get-sink-volume", "second"]).finish();
    assert!(volume.expect_success().stdout.contains(" 50% "), "with its volume");
    let cards = pulse(&server, "pactl", &["list", "cards"]).finish().expect_success().stdout;
    for known in ["alsa_card.hw_CARD_Audio_DEV_0", "device.bus = \"usb\""] {
        assert!(cards.contains(known), "{cards}");
    }
    let index = listed(&server, "sink-inputs")[0][0].clone();
    let moved = pulse(&server, "pactl", &["move-sink-input", &index, "second"]);
    moved.finish().expect_success();
    awaited("it plays there again", || (plays_on()? == second).then_some(()));
    await_state(&server, "deep");
    player.terminate();
    await_closed(9);
    // Nothing plays there, and nobody asks for it.
    pull("usbsnd", 9);
    awaited("the sink is gone", || (names(&server, "sinks") == ["consort"]).then_some(()));
}

#[test]
#[ignore = "in the virtual machine"]
fn each_card_that_is_plugged_in_is_a_device_unless_it_drives() {
    pull("usbsnd", 9);
    let server = server_on("hw:0", &["--capture", "0", "--stream-card", "all"]);
    let devices = || -> Vec<String> {
        let devices = server.observer().further_devices().expect("an answer");
        devices.into_iter().filter_map(|device| device.card).collect()
    };
    let plug_in = || monitor(&["device_add", "usb-audio,id=usbsnd,bus=xhci.0,audiodev=usb"]);
    for _ in 0..2 {
        plug_in();
        let all = awaited("the card is a device", || Some(devices()).filter(|all| !all.is_empty()));
        // The loopback and the dummy card cannot be heard, and the chip drives: all come before it.
        assert!(all.len() == 1 && all[0].contains("playback 2"), "{all:?}");
        let name = server.observer().further_devices().expect("an answer")[0].name.clone();
        let path = file(&server, &numbers(RATE));
        let path = path.to_string_lossy();
        server.consort(&["play", "--device", &name, &path]).expect_success();
        pull("usbsnd", 9);
        awaited("it is none", || devices().is_empty().then_some(()));
    }
    plug_in();
    awaited("the kernel has it for the next test", || has_card(9).then_some(()));
    let log = server.stop();
    assert!(!log.stderr.contains("no device for streams"), "{}", log.stderr);
}
