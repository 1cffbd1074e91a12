//! Sounds that programs leave with the server, and have played by name.

use harness::{Sound, eventually, in_three_attempts};

use crate::{RATE_HZ, Scene, compare, path, ramps};

#[test]
fn a_sample_is_heard_as_it_was_uploaded_after_its_program_has_left() {
    let sound = ramps(RATE_HZ as usize);
    in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("ramps.wav", &sound);
        scene.pactl(&["upload-sample", path(&file), "ramps"]);
        scene.pactl(&["play-sample", "ramps"]);
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn a_sample_longer_than_a_stream_holds_is_heard_whole() {
    // Half of the longest.
    let level = vec![1.0 / 128.0; 20 * RATE_HZ as usize];
    let sound = Sound::of(RATE_HZ, &[level.clone(), level]);
    in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("level.wav", &sound);
        scene.pactl(&["upload-sample", path(&file), "level"]);
        scene.pactl(&["play-sample", "level", "@DEFAULT_SINK@"]);
        // It plays from memory that it has of its own.
        scene.pactl(&["remove-sample", "level"]);
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn samples_are_listed_with_their_format_until_they_are_removed() {
    let scene = Scene::new();
    let mut events = scene.spawn("pactl", &["subscribe"]);
    eventually("it has subscribed", || {
        scene.pactl(&["info"]);
        events.stdout().contains("client").then_some(())
    });
    let file = scene.file("bell.wav", &ramps(24_000));
    scene.pactl(&["upload-sample", path(&file), "bell"]);
    let list = scene.pactl(&["list", "samples"]);
    for line in [
        "Sample #0",
        "Name: bell",
        "Sample Specification: float32le 2ch 48000Hz",
        "Duration: 0.5s",
        "Size: 187.5 KiB",
        "Lazy: no",
        "65536 / 100% / 0.00 dB",
    ] {
        assert!(list.contains(line), "{line}: {list}");
    }
    assert!(scene.pactl(&["stat"]).contains("Sample cache size: 187.5 KiB"));
    scene.pactl(&["upload-sample", path(&file), "bell"]);
    scene.pactl(&["remove-sample", "bell"]);
    assert_eq!(scene.pactl(&["list", "samples"]), "");
    for event in ["new", "change", "remove"] {
        let line = format!("Event '{event}' on sample-cache #0\n");
        eventually(&line, || events.stdout().contains(&line).then_some(()));
    }
    for refused in [["play-sample", "bell"], ["remove-sample", "bell"]] {
        let finished = scene.run("pactl", &refused);
        assert!(finished.stderr.contains("No such entity"), "{}", finished.stderr);
    }
}

#[test]
fn a_sample_that_is_too_long_is_refused_and_its_program_ends() {
    let scene = Scene::new();
    let long = vec![0.25; (16 << 20) / 4 + 1];
    let file = scene.file("long.wav", &Sound::of(RATE_HZ, &[long]));
    let finished = scene.run("pactl", &["upload-sample", path(&file), "long"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("Too large"), "{}", finished.stderr);
    assert_eq!(scene.pactl(&["list", "samples"]), "");
}
