//! Sinks that users suspend, and sinks that sleep.

use std::time::Duration;

use harness::{Program, eventually, in_three_attempts};

use crate::server_gone::{
    FADE, await_state, await_taken, compare_halves, noises, recorder, stop, taken,
};
use crate::{RATE_HZ, Scene, path};

fn await_said(program: &mut Program, words: &str) {
    eventually("the program is notified", || program.stderr().contains(words).then_some(()));
}

#[test]
fn a_stream_waits_while_its_sink_is_suspended_and_no_frame_of_it_is_lost() {
    let sound = noises(5 * RATE_HZ as usize);
    in_three_attempts(|| {
        let scene = Scene::new();
        let (mut recorder, file) = recorder(&scene);
        let song = scene.file("song.wav", &sound);
        let mut player = scene.spawn("paplay", &["--verbose", path(&song)]);
        await_taken(&file, RATE_HZ as usize);
        assert!(recorder.is_running());
        scene.pactl(&["suspend-sink", "consort", "1"]);
        await_state(&scene, "SUSPENDED");
        await_said(&mut player, "Stream device suspended.");
        eventually("the device sleeps", || {
            (scene.server.consort_json(&["status"])["device"] == "parked").then_some(())
        });
        let sources = scene.pactl(&["list", "short", "sources"]);
        assert!(sources.contains("SUSPENDED"), "{sources}");
        scene.pactl(&["suspend-sink", "consort", "0"]);
        await_said(&mut player, "Stream device resumed.");
        player.finish().expect_success();
        std::thread::sleep(Duration::from_millis(500));
        stop(recorder);
        compare_halves(&taken(&file), &sound, (2 * FADE, 0))
    });
}

/// The index of the newest client in a list of `pactl`, which has printed it.
fn newest_client(list: &str) -> u32 {
    let clients = list.lines().filter_map(|line| line.strip_prefix("Client #"));
    clients.filter_map(|index| index.parse().ok()).max().expect("itself")
}

#[test]
fn programs_are_notified_when_a_sink_sleeps_and_when_the_server_is_gone() {
    let mut scene = Scene::new();
    let mut events = scene.subscribed();
    let song = scene.file("song.wav", &noises(RATE_HZ as usize));
    scene.run("paplay", &[path(&song)]).expect_success();
    let list = scene.pactl(&["list"]);
    assert!(list.contains("Sink #0\n\tState: IDLE\n"), "{list}");
    // Events come in order: those of a sink that did not sleep yet are here by then.
    let gone = format!("'remove' on client #{}\n", newest_client(&list));
    eventually(&gone, || events.stdout().contains(&gone).then_some(()));
    let changes = |events: &mut Program| events.stdout().matches("'change' on sink #0").count();
    let before = changes(&mut events);
    eventually("programs are notified", || (changes(&mut events) > before).then_some(()));
    assert!(scene.pactl(&["list", "short", "sinks"]).contains("SUSPENDED"));
    let long = scene.file("long.wav", &noises(20 * RATE_HZ as usize));
    let mut player = scene.spawn("paplay", &["--verbose", path(&long)]);
    await_state(&scene, "RUNNING");
    scene.server.kill();
    await_said(&mut player, "Stream device suspended.");
    scene.server.start_again();
    await_said(&mut player, "Stream device resumed.");
}
