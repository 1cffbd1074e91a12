//! What mixers see and change of other programs' streams.

use harness::{Program, Sound, eventually, in_three_attempts, not_run};

use std::io::Write;
use std::os::unix::net::UnixStream;

use crate::bad_input::{auth, connect, packet};
use crate::programs::source;
use crate::{RATE_HZ, Scene, path, ramps, same_frames};

/// Starts a program that plays for some seconds; returns it with its stream's index.
fn playing(scene: &Scene) -> (Program, String) {
    let level = Sound::of(RATE_HZ, &[vec![0.5; 480_000], vec![0.5; 480_000]]);
    let file = scene.file("level.wav", &level);
    let player = scene.spawn("paplay", &["--client-name=a player", path(&file)]);
    let index = eventually("a stream plays", || {
        let short = scene.pactl(&["list", "short", "sink-inputs"]);
        short.split_whitespace().next().map(str::to_owned)
    });
    (player, index)
}

#[test]
fn a_stream_is_shown_with_its_program_and_ends_with_it() {
    let scene = Scene::new();
    let mut events = scene.spawn("pactl", &["subscribe"]);
    eventually("it has subscribed", || {
        // Only what happens after it has subscribed is reported.
        scene.pactl(&["info"]);
        events.stdout().contains("client").then_some(())
    });
    let (player, index) = playing(&scene);
    let list = scene.pactl(&["list", "sink-inputs"]);
    for line in [
        "application.name = \"a player\"",
        "level.wav\"",
        "Sample Specification: float32le 2ch 48000Hz",
        "Corked: no",
        "Mute: no",
        "65536 / 100% / 0.00 dB",
    ] {
        assert!(list.contains(line), "{line}: {list}");
    }
    assert!(scene.pactl(&["list", "short", "sinks"]).contains("RUNNING"));
    player.terminate();
    for event in ["new", "remove"] {
        let line = format!("Event '{event}' on sink-input #{index}\n");
        eventually(&line, || events.stdout().contains(&line).then_some(()));
    }
    assert_eq!(scene.pactl(&["list", "short", "sink-inputs"]), "");
}

#[test]
fn a_volume_is_heard_as_its_cube_and_mute_as_silence() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let (player, index) = playing(&scene);
        let shown = |line: &str| {
            let list = scene.pactl(&["list", "sink-inputs"]);
            assert!(list.contains(line), "{line}: {list}");
        };
        let wait = || std::thread::sleep(std::time::Duration::from_millis(300));
        wait();
        scene.pactl(&["set-sink-input-volume", &index, "50%"]);
        shown("32768 /  50% / -18.06 dB");
        wait();
        scene.pactl(&["set-sink-input-mute", &index, "1"]);
        shown("Mute: yes");
        wait();
        player.terminate();
        let recorded = scene.recorded();
        let long = |level: f32| {
            let mut longest = 0;
            let mut run = 0;
            for sample in recorded.channels[0].iter().skip_while(|sample| **sample == 0.0) {
                run = if *sample == level { run + 1 } else { 0 };
                longest = longest.max(run);
            }
            longest
        };
        // Each for a tenth of a second at least.
        for level in [0.5, 0.0625, 0.0] {
            if long(level) < 4800 {
                return Err(format!("{level} was heard for {} frames", long(level)));
            }
        }
        // No step is larger than a ramp of 10 ms.
        let steps = recorded.channels[0].windows(2).map(|pair| (pair[0] - pair[1]).abs());
        let begins = 1;
        let large = steps.filter(|step| *step > 0.5 / 240.0).count();
        if large <= begins { Ok(()) } else { Err(format!("{large} steps")) }
    });
}

#[test]
fn a_slider_that_is_dragged_in_a_mixer_is_heard_without_a_step() {
    const CHANGES: usize = 100;
    in_three_attempts(|| {
        let scene = Scene::new();
        if scene.run("/usr/bin/python3", &["-c", "import pulsectl"]).code != Some(0) {
            not_run("python3-pulsectl is not installed");
            return Ok(());
        }
        let (player, _) = playing(&scene);
        // Further than any hand moves it, and in the end to an eighth.
        let volume = |change: usize| (change * 37 % 101) as f32 / 100.0;
        let volumes = (1..CHANGES).map(volume).chain([0.5]);
        let volumes: Vec<String> = volumes.map(|volume| volume.to_string()).collect();
        let script = source("slider.py");
        let mut dragged = vec![path(&script)];
        dragged.extend(volumes.iter().map(String::as_str));
        scene.run("/usr/bin/python3", &dragged).expect_success();
        std::thread::sleep(std::time::Duration::from_millis(300));
        let late = scene.server.late_frames();
        player.terminate();
        let recorded = scene.recorded();
        if late > 0 {
            return Err("the machine took a CPU for longer than is queued".into());
        }
        let heard = &recorded.channels[0];
        let begin = heard.iter().position(|sample| *sample != 0.0).expect("sound");
        let steps: Vec<f32> =
            heard[begin..].windows(2).map(|pair| (pair[0] - pair[1]).abs()).collect();
        let large = steps.iter().filter(|step| **step > 1.01 * 0.5 / 240.0).count();
        assert_eq!(large, 0, "steps that are larger than those of a ramp");
        let changing = steps.iter().filter(|step| **step > 0.0).count();
        assert!(changing > CHANGES, "{changing} frames differ from the one before");
        let mut runs = heard.chunk_by(|one, other| one == other);
        let last = runs.rfind(|run| run.len() > 4800 && run[0] != 0.0).map(|run| run[0]);
        if last == Some(0.0625) { Ok(()) } else { Err(format!("{last:?} is heard in the end")) }
    });
}

#[test]
fn the_volume_of_the_sink_is_that_of_the_servers_device() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let (player, _) = playing(&scene);
        scene.pactl(&["set-sink-volume", "consort", "50%"]);
        let shown = scene.pactl(&["get-sink-volume", "@DEFAULT_SINK@"]);
        assert!(shown.contains("32768 /  50% / -18.06 dB"), "{shown}");
        let device = scene.server.consort_json(&["status"])["device_volume"].clone();
        assert_eq!(device, 0.125);
        std::thread::sleep(std::time::Duration::from_millis(300));
        scene.run("pamixer", &["--mute"]).expect_success();
        assert_eq!(scene.pactl(&["get-sink-mute", "consort"]), "Mute: yes\n");
        std::thread::sleep(std::time::Duration::from_millis(300));
        scene.run("pamixer", &["--unmute", "--set-volume", "100"]).expect_success();
        std::thread::sleep(std::time::Duration::from_millis(300));
        player.terminate();
        let recorded = scene.recorded();
        let heard =
            |level: f32| recorded.channels[0].iter().filter(|sample| **sample == level).count();
        let counts = [heard(0.0625), heard(0.5)];
        let is_heard = counts[0] > 0 && counts[1] > 4800;
        let frames = recorded.channels[0].len();
        let wrong = || format!("{counts:?} of {frames} frames are as loud as asked");
        is_heard.then_some(()).ok_or_else(wrong)
    });
}

#[test]
fn each_channel_of_a_sink_has_a_volume_that_is_heard_and_shown() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let (player, _) = playing(&scene);
        let wait = || std::thread::sleep(std::time::Duration::from_millis(300));
        scene.pactl(&["set-sink-volume", "consort", "50%", "100%"]);
        let shown = scene.pactl(&["get-sink-volume", "consort"]);
        for channel in ["front-left: 32768 /  50%", "front-right: 65536 / 100%"] {
            assert!(shown.contains(channel), "{shown}");
        }
        let own = scene.server.consort(&["volume", "device"]).expect_success().stdout;
        assert_eq!(own, "device: 12.5 % (-18.1 dB) / 100 % (0.0 dB)\n");
        let status = scene.server.consort_json(&["status"]);
        assert_eq!(status["device_volumes"], serde_json::json!([0.125, 1.0]));
        wait();
        scene.pactl(&["set-sink-volume", "consort", "100%", "0%"]);
        wait();
        player.terminate();
        let recorded = scene.recorded();
        let [left, right] = [0, 1].map(|channel| &recorded.channels[channel]);
        for levels in [(0.0625, 0.5), (0.5, 0.0)] {
            let frames = left.iter().zip(right).filter(|pair| (*pair.0, *pair.1) == levels).count();
            // A tenth of a second at least.
            if frames < 4800 {
                return Err(format!("{levels:?} was heard for {frames} frames"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_killed_stream_ends_its_player() {
    let scene = Scene::new();
    let (player, index) = playing(&scene);
    // `pactl` has no command for it.
    let index: u32 = index.parse().expect("a number");
    let kill = [&b"L"[..], &index.to_be_bytes()].concat();
    let mut mixer = connect(&scene);
    mixer.write_all(&[auth(), packet(49, &kill)].concat()).expect("sent");
    let finished = player.finish();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("Entity killed"), "{}", finished.stderr);
    scene.await_no_stream();
}

#[test]
fn pulsemixer_and_pamixer_see_the_sink_and_streams() {
    let scene = Scene::new();
    let (player, index) = playing(&scene);
    let list = scene.run("pulsemixer", &["--list"]).expect_success().stdout;
    assert!(list.contains("Name: consort") && list.contains("Name: a player"), "{list}");
    let id = format!("sink-input-{index}");
    let set = ["--id", &id, "--set-volume", "40", "--get-volume"];
    assert_eq!(scene.run("pulsemixer", &set).expect_success().stdout, "40 40\n");
    let list = scene.pactl(&["list", "sink-inputs"]);
    assert!(list.contains(" /  40% / "), "{list}");
    let sinks = scene.run("pamixer", &["--list-sinks"]).expect_success().stdout;
    assert!(sinks.contains("\"consort\""), "{sinks}");
    assert_eq!(scene.run("pamixer", &["--get-volume"]).expect_success().stdout, "100\n");
    player.terminate();
}

#[test]
fn a_pause_of_mpv_holds_the_sound_and_goes_on_where_it_held() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let sound = ramps(4 * RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        let ipc = scene.server.directory().join("mpv");
        let server = format!("--input-ipc-server={}", path(&ipc));
        let arguments =
            ["--no-config", "--ao=pulse", "--no-video", "--no-terminal", &server, path(&file)];
        let player = scene.spawn("mpv", &arguments);
        eventually("it plays", || {
            scene.pactl(&["list", "short", "sinks"]).contains("RUNNING").then_some(())
        });
        std::thread::sleep(std::time::Duration::from_millis(500));
        let pause = |pauses: bool| {
            let mut socket = UnixStream::connect(&ipc).expect("mpv");
            let command = format!("{{\"command\":[\"set_property\",\"pause\",{pauses}]}}\n");
            socket.write_all(command.as_bytes()).expect("sent");
        };
        pause(true);
        eventually("it is corked", || {
            scene.pactl(&["list", "sink-inputs"]).contains("Corked: yes").then_some(())
        });
        std::thread::sleep(std::time::Duration::from_millis(500));
        pause(false);
        player.finish().expect_success();
        let recorded = scene.recorded();
        compare_around_pause(&recorded, &sound)
    });
}

/// Before a pause each frame follows the other; after it, it goes on where it held, in a fade.
fn compare_around_pause(recorded: &Sound, sound: &Sound) -> Result<(), String> {
    const FADE: usize = 240;
    const WINDOW: usize = 1000;
    let before = same_frames(recorded, &sound.channels)?;
    let after = &sound.channels[0][before + FADE..];
    let paused = &recorded.channels[0][before..];
    let resumed = paused.windows(WINDOW).position(|window| window == &after[..WINDOW]);
    let resumed = resumed.ok_or_else(|| format!("nothing follows after {before} frames"))?;
    let pairs = paused[resumed..].iter().zip(after);
    let same = pairs.take_while(|(recorded, expected)| recorded == expected).count();
    // It leaves by its own clock.
    let least = after.len() - RATE_HZ as usize / 20;
    if same < least || before < WINDOW {
        return Err(format!("{before} frames before a pause and {same} after it"));
    }
    Ok(())
}
