//! The server goes away, and comes back.

use harness::eventually;

use crate::{RATE_HZ, Scene, path, ramps};

#[test]
fn the_front_end_outlives_its_server_and_finds_the_next_one() {
    let mut scene = Scene::new();
    let long = scene.file("long.wav", &ramps(20 * RATE_HZ as usize));
    let player = scene.spawn("paplay", &[path(&long)]);
    eventually("it plays", || {
        scene.pactl(&["list", "short", "sinks"]).contains("RUNNING").then_some(())
    });
    let mut events = scene.spawn("pactl", &["subscribe"]);
    eventually("it has subscribed", || {
        scene.pactl(&["info"]);
        events.stdout().contains("client").then_some(())
    });
    scene.server.kill();
    let finished = player.finish();
    assert!(finished.stderr.contains("Entity killed"), "{}", finished.stderr);
    // Programs stay connected, and see that there is no sink.
    eventually("the sink is gone", || {
        scene.pactl(&["list", "short", "sinks"]).is_empty().then_some(())
    });
    let short = scene.file("short.wav", &ramps(4800));
    let refused = scene.run("paplay", &[path(&short)]);
    assert!(refused.stderr.contains("No such entity"), "{}", refused.stderr);
    scene.server.start_again();
    eventually("the sink is back", || {
        scene.pactl(&["list", "short", "sinks"]).contains("consort").then_some(())
    });
    scene.run("paplay", &[path(&short)]).expect_success();
    assert!(events.is_running());
    let stdout = events.stdout().to_owned();
    for event in ["'remove' on sink #0", "'new' on sink #0"] {
        assert!(stdout.contains(event), "{event}: {stdout}");
    }
}

#[test]
fn another_driver_ends_streams_and_later_ones_play_on_it() {
    let scene = Scene::with(&["--driver", "timer", "--quantum", "256"]);
    let long = scene.file("long.wav", &ramps(20 * RATE_HZ as usize));
    let player = scene.spawn("paplay", &[path(&long)]);
    eventually("it plays", || {
        scene.pactl(&["list", "short", "sinks"]).contains("RUNNING").then_some(())
    });
    scene.server.consort(&["driver", "timer", "--playback", "5"]).expect_success();
    let finished = player.finish();
    assert!(finished.stderr.contains("Entity killed"), "{}", finished.stderr);
    let short = scene.file("short.wav", &ramps(4800));
    scene.run("paplay", &[path(&short)]).expect_success();
    let sinks = scene.pactl(&["list", "short", "sinks"]);
    assert!(sinks.contains("5ch"), "{sinks}");
}
