//! Links between devices: what is heard on one is played on another.

use std::time::Duration;

use client::stream::{RecordOptions, RecordStream, SamplesMut, StreamConnection};
use harness::{Server, Sound, eventually, in_three_attempts, tone};

use crate::{RATE_HZ, await_playing, file, play, play_to_end, ramps, server, streams};

/// The latency of a link where none is given, ns.
const LATENCY_NS: u64 = 200_000_000;

fn add_null(server: &Server, words: &[&str]) {
    server.consort(&[&["device", "add", "null", "--name"], words].concat()).expect_success();
}

/// Adds a loopback and returns its process.
fn add_loopback(server: &Server, words: &[&str]) -> u32 {
    let added = server.consort(&[&["device", "add", "loopback"], words].concat()).expect_success();
    assert!(added.stdout.contains("loopback: other to system"), "{added:?}");
    let streams = streams(server);
    let process = streams.last().expect("its streams")["pid"].as_u64().expect("a number");
    u32::try_from(process).expect("a process id")
}

/// The line of `consort device list` that has this in it.
fn shown(server: &Server, name: &str) -> Option<String> {
    let list = server.consort(&["device", "list"]).expect_success().stdout;
    list.lines().find(|line| line.contains(name)).map(Into::into)
}

fn await_silent(server: &Server) {
    eventually("both devices are parked", || {
        let status = server.consort_json(&["status"]);
        let states = [&status["device"], &status["further_devices"][0]["state"]];
        states.iter().all(|state| **state == "parked").then_some(())
    });
}

/// Plays a file to its end; `Err` if the machine took too long for the player, the link or a
/// device.
fn play_through(server: &Server, sound: &Sound, name: &str) -> Result<(), String> {
    let path = file(server, name, sound);
    play_to_end(server, &path, &["--device", "other"])?;
    await_silent(server);
    server.check_rendered()?;
    match shown(server, "loopback") {
        Some(line) if line.contains(" 0 gaps") => Ok(()),
        line => Err(format!("{line:?}")),
    }
}

/// Where a tone of 1 kHz is in each hundredth of a second, in frames, and how loud.
fn phases(samples: &[f32]) -> Vec<(f64, f64)> {
    let turns = std::f64::consts::TAU / 48.0;
    let phase = |block: &[f32]| {
        let (mut sine, mut cosine) = (0.0, 0.0);
        for (index, sample) in block.iter().enumerate() {
            sine += f64::from(*sample) * (turns * index as f64).sin();
            cosine += f64::from(*sample) * (turns * index as f64).cos();
        }
        (cosine.atan2(sine) / turns, sine.hypot(cosine) * 2.0 / block.len() as f64)
    };
    samples.chunks_exact(480).map(phase).collect()
}

#[test]
fn a_loopback_plays_all_that_is_heard_on_a_device_at_its_pitch_and_level() {
    in_three_attempts(|| {
        let server = server(1024);
        add_null(&server, &["other"]);
        add_loopback(&server, &["--from", "other", "--to", "system"]);
        let frames = 4 * RATE_HZ as usize;
        let tone = tone(1000.0, RATE_HZ, frames);
        let level = tone.iter().fold(0.0_f32, |level, sample| level.max(sample.abs()));
        let silent = vec![0.0; frames];
        play_through(&server, &Sound::of(RATE_HZ, &[tone, silent]), "tone.wav")?;
        let recorded = server.recorded();
        let heard = recorded.sounding(0).channels.swap_remove(0);
        // The filter rings for as many frames as it has taps.
        assert!(heard.len().abs_diff(frames) < 200, "{} frames", heard.len());
        let phases = phases(&heard[480..frames - 480]);
        let begin = phases[0].0;
        for (number, (phase, loud)) in phases.iter().enumerate() {
            let moved = (phase - begin + 72.0).rem_euclid(48.0) - 24.0;
            assert!(moved.abs() < 1.0, "it has moved by {moved} frames in part {number}");
            assert!((loud / f64::from(level) - 1.0).abs() < 0.002, "{loud} in part {number}");
        }
        assert!(recorded.channels[1].iter().all(|sample| *sample == 0.0), "the other channel");
        Ok(())
    });
}

/// Records what leaves a device, until it is read.
fn monitor(connection: &StreamConnection, device: &str) -> RecordStream {
    let mut stream = connection
        .record(RecordOptions {
            program: "test".into(),
            name: "monitor".into(),
            device: Some(device.into()),
            monitor: true,
            channels: vec![0],
            interval_frames: RATE_HZ,
            lets_sleep: false,
        })
        .expect("a stream");
    stream.set_interval(RATE_HZ / 20).expect("an interval");
    stream.run().expect("it runs");
    stream
}

/// Reads what there is, and appends when each click in it was heard.
fn note_clicks(stream: &mut RecordStream, clicks: &mut Vec<u64>) {
    let mut samples = vec![0.0; 4 * RATE_HZ as usize];
    let reader = stream.reader_mut();
    let frames = reader.read(SamplesMut::Planar(&mut [&mut samples]));
    let first = reader.position() - frames as u64;
    let timing = reader.control_mut().timing();
    let is_peak = |at: &usize| {
        let near = &samples[at.saturating_sub(48)..(at + 48).min(frames)];
        samples[*at] > 0.3 && near.iter().all(|sample| *sample <= samples[*at])
    };
    for at in (0..frames).filter(is_peak) {
        clicks.push(timing.time_of(first + at as u64).expect("it runs"));
    }
}

/// Plays four clicks on the first of some devices, and returns when they were heard on each. `Err`
/// if the machine took too long for a player or the link `name`.
fn clicks(server: &Server, devices: &[&str], name: &str) -> Result<Vec<Vec<u64>>, String> {
    let mut click = vec![0.0; RATE_HZ as usize / 2];
    click[9_600] = 0.8;
    let path = file(server, "clicks.wav", &Sound::of(RATE_HZ, &[click.repeat(4)]));
    let connection = server.stream_connection();
    let mut streams: Vec<RecordStream> =
        devices.iter().map(|device| monitor(&connection, device)).collect();
    let mut clicks = vec![Vec::new(); devices.len()];
    let player = play(server, &path, &["--device", devices[0]]);
    let begin = std::time::Instant::now();
    while clicks.iter().any(|clicks| clicks.len() < 4) && begin.elapsed() < Duration::from_secs(10)
    {
        std::thread::sleep(Duration::from_millis(50));
        for (stream, clicks) in streams.iter_mut().zip(&mut clicks) {
            note_clicks(stream, clicks);
        }
    }
    player.finish();
    server.check_rendered()?;
    let line = shown(server, name).unwrap_or_default();
    assert!(line.contains(": 200 ms, "), "{line}");
    let are_there = clicks.iter().all(|clicks| clicks.len() == 4);
    // On each of the devices.
    let in_time = line.matches(" 0 gaps").count() == devices.len() - 1;
    if are_there && in_time { Ok(clicks) } else { Err(format!("{line}: {clicks:?}")) }
}

/// Checks that each click was played a latency after it was heard, to two frames: the clicks are
/// told to a frame on either side.
fn check_latency(heard: &[u64], played: &[u64]) {
    for (heard, played) in heard.iter().zip(played) {
        let off_ns = (played - heard).abs_diff(LATENCY_NS);
        assert!(off_ns < 42_000, "{off_ns} ns: {heard:?}, {played:?}");
    }
}

#[test]
fn what_a_loopback_plays_is_heard_exactly_its_latency_later_each_time_it_begins() {
    in_three_attempts(|| {
        let server = server(256);
        add_null(&server, &["other"]);
        add_loopback(&server, &["--from", "other", "--to", "system"]);
        for _ in 0..2 {
            let clicks = clicks(&server, &["other", "system"], "loopback")?;
            check_latency(&clicks[0], &clicks[1]);
            await_silent(&server);
        }
        Ok(())
    });
}

#[test]
fn a_combined_device_is_heard_on_all_of_its_devices_at_the_same_time() {
    in_three_attempts(|| {
        let server = server(256);
        add_null(&server, &["other", "--rate", "44100"]);
        let words = ["--name", "both", "--to", "system", "--to", "other"];
        let added = server.consort(&[&["device", "add", "combined"], &words[..]].concat());
        let added = added.expect_success().stdout;
        assert!(added.contains("both: both to system; both to other"), "{added}");
        let heard = clicks(&server, &["both", "system", "other"], "both to")?;
        heard[1..].iter().for_each(|played| check_latency(&heard[0], played));
        server.consort(&["device", "remove", "both"]).expect_success();
        assert!(shown(&server, "both").is_none(), "the device is gone, too");
        Ok(())
    });
}

#[test]
fn a_remap_is_heard_on_the_chosen_channels_of_another_device() {
    in_three_attempts(|| {
        let server = server(1024);
        let words = ["--name", "other", "--to", "system", "--map", "2,1"];
        server.consort(&[&["device", "add", "remap"], &words[..]].concat()).expect_success();
        let frames = RATE_HZ as usize;
        let sides = [tone(500.0, RATE_HZ, frames), tone(2000.0, RATE_HZ, frames)];
        let path = file(&server, "tones.wav", &Sound::of(RATE_HZ, &sides));
        play_to_end(&server, &path, &["--device", "other"])?;
        await_silent(&server);
        server.check_rendered()?;
        server.consort(&["device", "remove", "other"]).expect_success();
        assert!(shown(&server, "other").is_none(), "the device is gone, too");
        let recorded = server.recorded();
        for (channel, hz) in [(0, 2000.0), (1, 500.0)] {
            let heard = recorded.sounding(channel);
            let found = heard.frequency_hz(0);
            assert!((found - hz).abs() < 5.0, "channel {channel}: {found} Hz");
        }
        Ok(())
    });
}

#[test]
fn a_loopback_lets_both_devices_sleep_and_plays_again() {
    in_three_attempts(|| {
        let server = server(1024);
        add_null(&server, &["other"]);
        add_loopback(&server, &["--from", "other", "--to", "system", "--latency", "100"]);
        await_silent(&server);
        let sound = ramps(RATE_HZ as usize);
        play_through(&server, &sound, "first.wav")?;
        play_through(&server, &sound, "second.wav")?;
        let recorded = server.recorded();
        let sounding = recorded.sounding(0).channels.swap_remove(0);
        let sound = sounding.iter().filter(|sample| sample.abs() > 1e-4).count();
        // Twice all of it; the ramps cross zero now and then.
        assert!(sound.abs_diff(2 * RATE_HZ as usize) < 600, "{sound} frames");
        Ok(())
    });
}

#[test]
fn a_loopback_between_different_rates_keeps_the_pitch() {
    in_three_attempts(|| {
        let server = server(1024);
        add_null(&server, &["other", "--rate", "44100"]);
        add_loopback(&server, &["--from", "other", "--to", "system"]);
        let tone = tone(1000.0, 44_100, 2 * 44_100);
        play_through(&server, &Sound::of(44_100, &[tone.clone(), tone]), "tone.wav")?;
        let heard = server.recorded().sounding(1);
        assert!(heard.channels[0].len().abs_diff(2 * RATE_HZ as usize) < 200);
        let hz = heard.frequency_hz(0);
        assert!((hz - 1000.0).abs() < 1.0, "{hz} Hz");
        Ok(())
    });
}

#[test]
fn a_loopback_plays_on_the_channels_that_it_is_told() {
    in_three_attempts(|| {
        let server = server(1024);
        add_null(&server, &["other", "--playback", "1"]);
        add_loopback(&server, &["--from", "other", "--to", "system", "--map", "2"]);
        let tone = tone(1000.0, RATE_HZ, RATE_HZ as usize);
        play_through(&server, &Sound::of(RATE_HZ, &[tone]), "tone.wav")?;
        let recorded = server.recorded();
        assert!(recorded.peak(0) == 0.0 && recorded.peak(1) > 0.1, "the right channel alone");
        Ok(())
    });
}

/// Whether a process is there, and no zombie.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_loopback_ends_when_it_or_a_device_is_removed_or_the_server_ends() {
    let server = server(1024);
    let words = ["--from", "other", "--to", "system"];
    let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));

    add_null(&server, &["other"]);
    let process = add_loopback(&server, &words);
    let player = play(&server, &path, &["--device", "other"]);
    await_playing(&server);
    server.consort(&["device", "remove", "loopback"]).expect_success();
    assert!(!runs(process) && shown(&server, "loopback").is_none());
    eventually("its streams have ended", || (streams(&server).len() == 1).then_some(()));

    let process = add_loopback(&server, &words);
    eventually("it plays", || shown(&server, "loopback")?.contains("plays,").then_some(()));
    server.consort(&["device", "remove", "other"]).expect_success();
    player.finish();
    eventually("it has ended", || (!runs(process)).then_some(()));
    eventually("nothing is left", || streams(&server).is_empty().then_some(()));

    add_null(&server, &["other"]);
    let process = add_loopback(&server, &words);
    server.stop();
    eventually("it has ended with the server", || (!runs(process)).then_some(()));
}

#[test]
fn a_loopback_begins_again_on_another_driver_with_the_volume_that_it_had() {
    let server = server(1024);
    add_null(&server, &["other"]);
    add_loopback(&server, &["--from", "other", "--to", "system"]);
    let path = file(&server, "song.wav", &ramps(120 * RATE_HZ as usize));
    let player = play(&server, &path, &["--device", "other"]);
    let on_system = |stream: &serde_json::Value| {
        stream["plays"] == true && stream["device"].is_null() && stream["direction"] == "playback"
    };
    let number = || {
        let streams = streams(&server);
        streams.iter().find(|stream| on_system(stream)).map(|stream| stream["number"].clone())
    };
    let before = eventually("it plays", number);
    server.consort(&["volume", &before.to_string(), "50%"]).expect_success();
    server.consort(&["driver", "timer", "--playback", "5"]).expect_success();
    let after = eventually("it plays again", || number().filter(|number| *number != before));
    let streams = streams(&server);
    let again = streams.iter().find(|stream| stream["number"] == after).expect("it is there");
    assert_eq!((&again["volume"], &again["muted"]), (&0.5.into(), &false.into()));
    player.terminate();
}

#[test]
fn a_loopback_that_cannot_be_is_refused_with_the_reason() {
    let server = server(1024);
    add_null(&server, &["other"]);
    for (words, expected) in [
        (&["--to", "system"][..], "needs --from"),
        (&["--from", "other"], "needs --to"),
        (&["--from", "none", "--to", "system"], "there is no device 'none'"),
        (&["--from", "other", "--to", "none"], "there is no device 'none'"),
        (&["--from", "other", "--to", "other"], "would be played into itself"),
        (&["--from", "other:capture", "--to", "system"], "no channels that can be recorded"),
        (&["--from", "other", "--to", "system", "--map", "3"], "has channels 1 to 2"),
        (&["--from", "other", "--to", "system", "--map", "1,2,1"], "takes as many at most"),
        (&["--from", "other", "--to", "system", "--margin", "64"], "is not for a loopback"),
    ] {
        let refused = server.consort(&[&["device", "add", "loopback"], words].concat());
        assert_eq!(refused.code, Some(1), "{words:?}: {refused:?}");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    for (words, expected) in [
        (&["remap", "--to", "system"][..], "needs --map"),
        (&["remap", "--to", "system", "--map", "3"], "has channels 1 to 2"),
        (&["remap", "--to", "system", "--map", "1", "--name", "other"], "'other' already"),
        (&["combined"], "needs --to"),
        (&["combined", "--to", "system", "--to", "none"], "there is no device 'none'"),
        (&["combined", "--to", "system", "--map", "1"], "--map is not for"),
        (&["loopback", "--from", "other", "--to", "system", "--to", "x"], "there is no device 'x'"),
        (&["pipe-source", "--file", "f", "--to", "system", "--to", "other"], "plays on one device"),
        (&["remap", "--to", "system", "--to", "other", "--map", "1"], "--map is for one device"),
        (
            &[
                "loopback",
                "--from=other",
                "--to=system",
                "--from-positions=surround-40",
                "--to-positions=mono",
            ],
            "there are more positions",
        ),
    ] {
        let refused = server.consort(&[&["device", "add"], words].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains(expected), "{refused:?}");
    }
    let devices = server.consort_json(&["status"])["further_devices"].clone();
    assert_eq!(devices.as_array().map(Vec::len), Some(1), "none was left: {devices}");
    let refused = server.consort(&["device", "add", "null", "--to", "system"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("no hardware"), "{refused:?}");
    assert!(streams(&server).is_empty() && shown(&server, "loopback").is_none());
}

#[test]
fn a_circle_of_links_is_refused_by_its_name() {
    let server = server(1024);
    for name in ["a", "b", "c"] {
        add_null(&server, &[name]);
    }
    let add = |from: &str, to: &str| {
        server.consort(&["device", "add", "loopback", "--from", from, "--to", to])
    };
    add("a", "b").expect_success();
    add("b", "system").expect_success();
    add("b", "c").expect_success();
    for (from, to, circle) in [
        ("b", "a", "'b' would be heard on itself, through b to a to b:"),
        ("system", "a", "'system' would be heard on itself, through system to a to b to system:"),
    ] {
        let refused = add(from, to);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(refused.code == Some(1) && said.contains(circle), "{said}");
    }
    let remap = ["device", "add", "remap", "--name", "left", "--to", "a", "--map", "1"];
    server.consort(&remap).expect_success();
    let refused = add("c", "left");
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("through c to left to a to b to c:"), "{said}");
    add("system", "c").expect_success();
    assert_eq!(streams(&server).len(), 2 * 5, "and nothing is left of what was refused");
}

#[test]
fn a_link_that_is_moved_into_a_circle_ends() {
    let server = server(1024);
    for name in ["a", "b"] {
        add_null(&server, &[name]);
    }
    for (from, to) in [("a", "b"), ("b", "system")] {
        let words = ["device", "add", "loopback", "--from", from, "--to", to];
        server.consort(&words).expect_success();
    }
    let of_second = |stream: &&serde_json::Value| {
        stream["name"] == "b to system" && stream["direction"] == "playback"
    };
    let number = streams(&server).iter().find(of_second).expect("it plays")["number"].to_string();
    server.consort(&["move", &number, "a"]).expect_success();
    eventually("the link that was moved has ended", || (streams(&server).len() == 2).then_some(()));
    assert_eq!(streams(&server)[0]["name"], "a to b", "and the other one goes on");
}
