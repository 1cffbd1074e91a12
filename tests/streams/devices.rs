//! Devices beside the one that drives: null devices with a thread and a clock of their own.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Server, Sound, eventually, in_three_attempts, noise};

use crate::{RATE_HZ, end_recorder, file, play, play_to_end, ramps, server, streams, to_end};

/// Adds a null device.
fn add(server: &Server, name: &str) {
    let added = server.consort(&["device", "add", "null", "--name", name]).expect_success();
    assert!(added.stdout.contains(&format!("{name}: null device, 48000 Hz, 2 channels")));
}

/// Starts to record what leaves a device.
fn record(server: &Server, device: &str) -> (Program, PathBuf) {
    let path = server.directory().join(format!("{device}.wav"));
    let into = path.to_string_lossy();
    let recorder = server.spawn_consort(&["record", "--device", device, "--monitor", &into]);
    eventually("it records", || {
        let is_it = |stream: &serde_json::Value| {
            stream["plays"] == true
                && stream["direction"] == "monitor"
                && stream["device"].as_str().unwrap_or("system") == device
        };
        streams(server).iter().any(is_it).then_some(())
    });
    (recorder, path)
}

/// Ends a recording, after what was just heard. `Err` if the machine made holes in it.
fn recorded(server: &Server, (recorder, path): (Program, PathBuf)) -> Result<Sound, String> {
    std::thread::sleep(Duration::from_millis(500));
    end_recorder(server, recorder)?;
    Ok(Sound::read(&path))
}

/// Waits until a stream plays on a device; `None`: the one that drives.
fn await_playing_on(server: &Server, device: Option<&str>) {
    eventually("a stream plays there", || {
        // Those that record count as playing.
        let is_it = |stream: &serde_json::Value| {
            let plays = stream["plays"] == true && stream["program"] == "consort play";
            plays && stream["device"].as_str() == device
        };
        streams(server).iter().any(is_it).then_some(())
    });
}

/// What `consort status` shows of the only further device.
fn further(server: &Server) -> serde_json::Value {
    server.consort_json(&["status"])["further_devices"][0].clone()
}

/// How often a thread of the server of this name has gone to sleep, and so how often it woke.
fn sleeps(server: &mut Server, name: &str) -> u64 {
    let process = server.program().id();
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let of_name = tasks.flatten().find(|task| {
        let comm = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        comm.trim() == name
    });
    let status = of_name.and_then(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let status = status.unwrap_or_else(|| panic!("no thread {name}"));
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.expect("a count").trim().parse().expect("a number")
}

#[test]
fn a_file_on_a_further_device_is_heard_there_sample_for_sample_and_nowhere_else() {
    in_three_attempts(|| {
        let server = server(1024);
        add(&server, "other");
        let sound = ramps(3 * RATE_HZ as usize);
        let path = file(&server, "played.wav", &sound);
        let [heard, beside] = ["other", "system"].map(|device| record(&server, device));
        play_to_end(&server, &path, &["--device", "other"])?;
        let heard = recorded(&server, heard)?;
        for channel in 0..2 {
            let same = heard.sounding(channel).channels[0] == sound.channels[channel];
            assert!(same, "sample for sample");
        }
        let nothing = recorded(&server, beside)?;
        assert!(!nothing.channels[0].is_empty());
        assert!(nothing.channels.iter().flatten().all(|sample| *sample == 0.0), "nowhere else");
        Ok(())
    });
}

#[test]
fn a_stream_wakes_no_other_device_than_its_own() {
    let mut server = Server::start(&["--driver", "timer", "--quantum", "256"]);
    add(&server, "other");
    let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));
    eventually("the driver is parked", || {
        (server.consort_json(&["status"])["device"] == "parked").then_some(())
    });
    let player = play(&server, &path, &["--device", "other", "--latency", "200"]);
    await_playing_on(&server, Some("other"));
    let before = [sleeps(&mut server, "consort-driver"), sleeps(&mut server, "consort-device")];
    let woken = further(&server)["wake_ups"].as_u64().expect("a count");
    eventually("the device has woken often", || {
        (sleeps(&mut server, "consort-device") >= before[1] + 20).then_some(())
    });
    assert_eq!(sleeps(&mut server, "consort-driver"), before[0], "the driver thread sleeps");
    let status = server.consort_json(&["status"]);
    assert_eq!(
        (&status["device"], &status["further_devices"][0]["state"]),
        (&"parked".into(), &"deep".into())
    );
    assert!(further(&server)["wake_ups"].as_u64().expect("a count") > woken);
    player.terminate();
    eventually("the device is parked", || (further(&server)["state"] == "parked").then_some(()));

    let other = sleeps(&mut server, "consort-device");
    let player = play(&server, &path, &["--latency", "200"]);
    await_playing_on(&server, None);
    let driver = sleeps(&mut server, "consort-driver");
    eventually("the driver thread has woken often", || {
        (sleeps(&mut server, "consort-driver") >= driver + 20).then_some(())
    });
    assert_eq!(sleeps(&mut server, "consort-device"), other, "the device's thread sleeps");
    player.terminate();
}

#[test]
fn a_device_that_is_removed_ends_its_own_streams_and_no_others() {
    let server = server(1024);
    add(&server, "other");
    let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));
    let stays = play(&server, &path, &[]);
    let goes = play(&server, &path, &["--device", "other"]);
    let (recorder, _) = record(&server, "other");
    await_playing_on(&server, Some("other"));
    await_playing_on(&server, None);
    server.consort(&["device", "remove", "other"]).expect_success();
    for ended in [goes.finish(), recorder.finish()] {
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("its device was removed"), "{}", ended.stderr);
    }
    eventually("only one stream is left", || (streams(&server).len() == 1).then_some(()));
    let left = &streams(&server)[0];
    assert_eq!((&left["plays"], &left["device"]), (&true.into(), &serde_json::Value::Null));
    assert!(!server.consort(&["device", "list"]).expect_success().stdout.contains("other"));
    // Its name is free, and a device of that name is another one.
    add(&server, "other");
    let second = play(&server, &path, &["--device", "other"]);
    await_playing_on(&server, Some("other"));
    second.terminate();
    stays.terminate();
}

#[test]
fn a_device_that_is_not_there_is_refused_with_those_that_are() {
    let server = server(1024);
    add(&server, "other");
    let path = file(&server, "short.wav", &ramps(4800));
    for words in [
        &["play", "--device", "none", &path.to_string_lossy()][..],
        &["record", "--device", "none", "--monitor", "heard.wav"],
        &["device", "remove", "none"],
    ] {
        let refused = server.consort(words);
        assert_eq!(refused.code, Some(1), "{words:?}");
        let expected = "there is no device 'none': there are 'system', 'other'";
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    for (words, expected) in [
        (&["device", "add", "null", "--name", "other"][..], "there is a device 'other' already"),
        (&["device", "add", "null", "--name", "system"], "there is a device 'system' already"),
        (&["device", "add", "null", "--name", "a:b"], "no colon"),
        (&["device", "add", "null", "--playback", "33", "--name", "x"], "use 1 to 32"),
        (&["device", "add", "null", "--margin", "64"], "it has no hardware"),
        (&["device", "remove", "system"], "drives the graph"),
        (&["record", "--device", "other", "heard.wav"], "--monitor records what leaves it"),
    ] {
        let refused = server.consort(words);
        assert_eq!(refused.code, Some(1), "{words:?}");
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    play(&server, &path, &["--device", "system"]).finish().expect_success();
}

#[test]
fn a_further_device_has_a_rate_channels_and_a_volume_of_its_own() {
    in_three_attempts(|| {
        let server = server(1024);
        let words = ["device", "add", "null", "--rate", "96000", "--playback", "4"];
        let added = server.consort(&words).expect_success();
        assert!(added.stdout.contains("null: null device, 96000 Hz, 4 channels"), "{added:?}");
        server.consort(&["volume", "device:null", "50%"]).expect_success();
        let shown = server.consort(&["volume"]).expect_success().stdout;
        assert!(shown.contains("device: 100 %") && shown.contains("device:null: 50 %"), "{shown}");
        let sound = Sound::of(96_000, &ramps(RATE_HZ as usize).channels);
        let path = file(&server, "played.wav", &sound);
        let heard = record(&server, "null");
        play_to_end(&server, &path, &["--device", "null"])?;
        let heard = recorded(&server, heard)?;
        assert_eq!((heard.sample_rate_hz, heard.channels.len()), (96_000, 4));
        for (channel, played) in sound.channels.iter().enumerate() {
            let half: Vec<f32> = played.iter().map(|sample| sample * 0.5).collect();
            assert!(heard.sounding(channel).channels[0] == half, "half of each sample");
        }
        Ok(())
    });
}

#[test]
fn a_moved_stream_continues_where_it_was_heard_in_a_fade() {
    in_three_attempts(|| {
        let server = server(1024);
        add(&server, "other");
        let noise = [1, 2].map(|seed| noise(seed, 6 * RATE_HZ as usize));
        let sound = Sound::of(RATE_HZ, &noise);
        let path = file(&server, "played.wav", &sound);
        let recordings = [record(&server, "system"), record(&server, "other")];
        let player = play(&server, &path, &[]);
        await_playing_on(&server, None);
        assert!(server.lsp(&[]).contains("consort play:output_FL"));
        std::thread::sleep(Duration::from_millis(700));
        server.consort(&["move", "consort play", "other"]).expect_success();
        await_playing_on(&server, Some("other"));
        assert!(!server.lsp(&[]).contains("consort play:output_FL"), "a client no longer");
        std::thread::sleep(Duration::from_millis(700));
        server.consort(&["move", "consort play", "system"]).expect_success();
        await_playing_on(&server, None);
        assert!(server.lsp(&["-c"]).contains("consort play:output_FL\n   system:playback_1"));
        to_end(player)?;
        let [system, other] = recordings.map(|recording| recorded(&server, recording));
        let (system, other) = (system?, other?);
        for (channel, played) in sound.channels.iter().enumerate() {
            let parts =
                [parts(&system.channels[channel], played), parts(&other.channels[channel], played)];
            let [[first, last], [middle]] = [&parts[0][..], &parts[1][..]] else {
                return Err(format!("three parts: {parts:?}"));
            };
            // Before a fade-out at full level, and after a fade-in from the same frame on.
            assert_eq!((first.0, first.1 + FADE), (0, middle.0), "no frame is left out");
            assert_eq!((middle.1 + FADE, last.1), (last.0, played.len()), "nor twice");
        }
        Ok(())
    });
}

/// A fade, 5 ms.
const FADE: usize = RATE_HZ as usize / 200;

/// The parts of a sound, from which frame to which, that are in a recording at full level.
fn parts(recorded: &[f32], played: &[f32]) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at + FADE < recorded.len() {
        let block = &recorded[at..at + FADE];
        let found = block.iter().all(|sample| *sample != 0.0).then(|| {
            let is_it = |candidate: &[f32]| candidate == block;
            played.windows(FADE).position(is_it)
        });
        let Some(begin) = found.flatten() else {
            at += 1;
            continue;
        };
        let same = recorded[at..].iter().zip(&played[begin..]);
        let same = same.take_while(|(recorded, played)| recorded == played).count();
        parts.push((begin, begin + same));
        at += same;
    }
    parts
}

#[test]
fn a_move_that_cannot_be_is_refused_and_changes_nothing() {
    let server = server(1024);
    add_fast(&server);
    let path = file(&server, "song.wav", &ramps(60 * RATE_HZ as usize));
    let player = play(&server, &path, &[]);
    await_playing_on(&server, None);
    for (words, expected) in [
        (["move", "consort play", "none"], "there is no device 'none': there are 'system', 'fast'"),
        (["move", "nothing", "system"], "no program 'nothing'"),
    ] {
        let refused = server.consort(&words);
        assert_eq!(refused.code, Some(1), "{words:?}");
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    assert_eq!(streams(&server)[0]["device"], serde_json::Value::Null);
    player.terminate();
}

fn add_fast(server: &Server) {
    let words = ["device", "add", "null", "--name", "fast", "--rate", "96000", "--playback", "1"];
    server.consort(&words).expect_success();
}

/// The parts of a sound that rises from 0 to `most` in `seconds` which are in a recording at full
/// level: from which second to which. A fade rises, or falls, many times as fast.
fn rises(recorded: &Sound, seconds: f64, most: f64) -> Vec<(f64, f64)> {
    let block = recorded.sample_rate_hz as usize / 1000;
    let slope = most / seconds / f64::from(recorded.sample_rate_hz);
    let mut parts: Vec<(f64, f64)> = Vec::new();
    let mut is_rising = false;
    for block in recorded.channels[0].chunks_exact(block) {
        let (first, last) = (f64::from(block[0]), f64::from(block[block.len() - 1]));
        let steps = (block.len() - 1) as f64;
        let was_rising = is_rising;
        is_rising = first > 0.01 && ((last - first) / steps / slope - 1.0).abs() < 0.2;
        let (first, last) = (first / most * seconds, last / most * seconds);
        match parts.last_mut().filter(|_| was_rising) {
            Some(part) if is_rising => part.1 = last,
            _ if is_rising => parts.push((first, last)),
            _ => {}
        }
    }
    parts.retain(|(first, last)| last - first > 0.05);
    parts
}

/// The one stream of the player.
fn player_on(server: &Server, device: Option<&str>) {
    eventually("the player plays there alone", || {
        let all = streams(server);
        let played: Vec<_> =
            all.iter().filter(|stream| stream["direction"] == "playback").collect();
        let [only] = played[..] else { return None };
        (only["plays"] == true && only["device"].as_str() == device).then_some(())
    });
}

#[test]
fn a_player_goes_on_where_it_was_on_a_device_of_another_rate() {
    const SECONDS: usize = 6;
    in_three_attempts(|| {
        let server = server(1024);
        add_fast(&server);
        let frames = SECONDS * RATE_HZ as usize;
        let rise: Vec<f32> = (0..frames).map(|frame| 0.8 * frame as f32 / frames as f32).collect();
        let path = file(&server, "rise.wav", &Sound::of(RATE_HZ, &[rise.clone(), rise]));
        let recordings = [record(&server, "system"), record(&server, "fast")];
        let player = play(&server, &path, &[]);
        player_on(&server, None);
        server.consort(&["volume", "consort play", "50%"]).expect_success();
        server.consort(&["volume", "consort play", "100%"]).expect_success();
        std::thread::sleep(Duration::from_millis(700));
        server.consort(&["move", "consort play", "fast"]).expect_success();
        player_on(&server, Some("fast"));
        std::thread::sleep(Duration::from_millis(700));
        server.consort(&["move", "consort play", "system"]).expect_success();
        player_on(&server, None);
        to_end(player)?;
        let [system, fast] = recordings.map(|recording| recorded(&server, recording));
        let (system, fast) = (system?, fast?);
        assert_eq!((system.sample_rate_hz, fast.sample_rate_hz), (RATE_HZ, 96_000));
        let parts = [&system, &fast].map(|sound| rises(sound, SECONDS as f64, 0.8));
        let [[.., before, after], [between]] = [&parts[0][..], &parts[1][..]] else {
            return Err(format!("{parts:?}"));
        };
        // A fade of 5 ms on both devices, and what is left of a block of each.
        let fade = -0.001..0.012;
        for (end, begin) in [(before.1, between.0), (between.1, after.0)] {
            assert!(fade.contains(&(begin - end)), "nothing is left out, nor twice: {parts:?}");
        }
        assert!(SECONDS as f64 - after.1 < 0.005, "to its end: {parts:?}");
        Ok(())
    });
}
