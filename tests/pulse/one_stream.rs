//! What one stream plays is recorded alone.

use harness::{Program, Sound, eventually, in_three_attempts};
use rustix::process::Signal;

use crate::programs::{await_streams, screen, source};
use crate::{RATE_HZ, Scene, compare, is_installed, path, ramps};

#[test]
fn a_stream_that_is_recorded_alone_is_the_same_sample_for_sample_beside_a_louder_one() {
    let sound = ramps(RATE_HZ as usize);
    // The recorder begins before it.
    let later: Vec<Vec<f32>> = sound
        .channels
        .iter()
        .map(|channel| [vec![0.0; 2 * RATE_HZ as usize], channel.clone()].concat())
        .collect();
    in_three_attempts(|| {
        let scene = Scene::new();
        let played = scene.file("played.wav", &Sound::of(RATE_HZ, &later));
        let player = scene.spawn("paplay", &[path(&played)]);
        await_streams(&scene, "sink-inputs", 1);
        let list = scene.pactl(&["list", "short", "sink-inputs"]);
        let index = list.split_whitespace().next().expect("an index");
        let others = scene.file("others.wav", &ramps(4 * RATE_HZ as usize));
        let other = scene.spawn("paplay", &[path(&others)]);
        let file = scene.server.directory().join("taken.wav");
        let alone = format!("--monitor-stream={index}");
        let format = ["--format=float32le", "--rate=48000", "--channels=2", "--latency-msec=50"];
        let arguments = [&["--file-format=wav", &alone][..], &format, &[path(&file)]].concat();
        let recorder = scene.spawn("parec", &arguments);
        player.finish().expect_success();
        // It ends with the stream that it records.
        await_streams(&scene, "source-outputs", 0);
        recorder.signal(Signal::INT);
        recorder.finish();
        other.finish().expect_success();
        compare(&Sound::read(&file), &sound.channels)
    });
}

#[test]
fn pavucontrol_has_a_meter_for_each_stream_that_plays() {
    if !is_installed("pavucontrol") || !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let mut command = scene.command("pavucontrol", &["-t", "1"]);
    command.env("DISPLAY", &display);
    let mut mixer = Program::start(command);
    let meters = || scene.pactl(&["list", "short", "source-outputs"]).lines().count();
    let own = eventually("meters of the sources", || Some(meters()).filter(|count| *count > 0));
    let file = scene.file("played.wav", &ramps(6 * RATE_HZ as usize));
    let players = [0; 2].map(|_| scene.spawn("paplay", &[path(&file)]));
    eventually("a meter for each stream", || (meters() == own + 2).then_some(()));
    for player in players {
        player.finish().expect_success();
    }
    eventually("only those of the sources", || (meters() == own).then_some(()));
    assert!(mixer.is_running(), "{}", mixer.stderr());
    mixer.terminate();
}

#[test]
fn a_meter_has_the_peaks_of_its_stream_with_its_volume() {
    let scene = Scene::new();
    if scene.run("/usr/bin/python3", &["-c", "import pulsectl"]).code != Some(0) {
        return harness::not_run("python3-pulsectl is not installed");
    }
    let of_level =
        |level: f32| Sound::of(RATE_HZ, &[0; 2].map(|_| vec![level; 8 * RATE_HZ as usize]));
    let quiet = scene.file("quiet.wav", &of_level(0.25));
    let loud = scene.file("loud.wav", &of_level(0.5));
    let _quiet = scene.spawn("paplay", &["--client-name=quiet", path(&quiet)]);
    let _loud = scene.spawn("paplay", &["--client-name=loud", path(&loud)]);
    await_streams(&scene, "sink-inputs", 2);
    let script = source("peaks.py");
    let finished = scene.run("/usr/bin/python3", &[path(&script), "quiet"]).expect_success();
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(lines, ["at full volume 0.250", "at half of it 0.031"]);
}
