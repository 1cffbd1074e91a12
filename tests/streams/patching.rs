//! Programs with streams as clients: what patchbays show of them, and what they change.

use std::thread::sleep;
use std::time::Duration;

use harness::{Program, Server, Sound, eventually, in_three_attempts};
use rustix::process::Signal;

use crate::{RATE_HZ, await_no_stream, await_playing, file, play, ramps, server};

pub(crate) const LEFT: &str = "consort play:output_FL";
pub(crate) const RIGHT: &str = "consort play:output_FR";

/// Starts a player of half a minute.
pub(crate) fn playing(server: &Server) -> (Program, Sound) {
    let played = ramps(30 * RATE_HZ as usize);
    let path = file(server, "long.wav", &played);
    let player = play(server, &path, &[]);
    await_playing(server);
    (player, played)
}

/// Ends a player; returns what was heard from the player's first frame on, up to the fade of its
/// end.
///
/// # Errors
/// If the machine kept the player or the device from its CPU for longer than was queued.
pub(crate) fn heard(server: Server, player: Program) -> Result<Sound, String> {
    server.check_in_time()?;
    player.terminate();
    await_no_stream(&server);
    let mut recorded = server.recorded();
    let sounds = |channel: &Vec<f32>| channel.iter().position(|sample| *sample != 0.0);
    let begin = recorded.channels.iter().filter_map(sounds).min().expect("sound");
    for channel in &mut recorded.channels {
        channel.drain(..begin);
    }
    Ok(recorded)
}

/// What `jack_lsp -c` shows of the player's ports: "port < > port".
fn connections(server: &Server) -> Vec<(String, String)> {
    let listed = server.lsp(&["-c", "consort play"]);
    let mut port = "";
    let mut all = Vec::new();
    for line in listed.lines() {
        match line.strip_prefix("   ") {
            Some(other) => all.push((port.to_owned(), other.to_owned())),
            None => port = line,
        }
    }
    all
}

pub(crate) fn pair(source: &str, destination: &str) -> (String, String) {
    (source.to_owned(), destination.to_owned())
}

#[test]
fn a_program_with_a_stream_is_a_client_while_it_has_one() {
    let server = server(256);
    let mut monitor = server.spawn("jack_evmon", &[]);
    server.await_active("event-monitor");
    let (player, _) = playing(&server);
    let expected = [pair(LEFT, "system:playback_1"), pair(RIGHT, "system:playback_2")];
    assert_eq!(connections(&server), expected);
    let listed = server.consort(&["ls"]).expect_success().stdout;
    for port in [LEFT, RIGHT] {
        assert!(listed.contains(port), "{listed}");
    }
    let process = server.consort_json(&["ls"]);
    assert!(process.to_string().contains("consort play"), "{process}");

    // Another program of that name.
    let path = file(&server, "short.wav", &ramps(30 * RATE_HZ as usize));
    let other = play(&server, &path, &[]);
    eventually("the other one is there", || {
        server.lsp(&[]).contains("consort play-01:output_FR\n").then_some(())
    });
    other.terminate();
    player.terminate();
    eventually("both are gone", || (!server.lsp(&[]).contains("consort play")).then_some(()));
    let events = |monitor: &mut Program| {
        let of_first = |line: &&str| line.starts_with("Client consort play ");
        monitor.stdout().lines().filter(of_first).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = ["Client consort play registered", "Client consort play unregistered"];
    eventually("the monitor was notified", || (events(&mut monitor) == expected).then_some(()));
    for event in ["Ports 5 and 3 connected", "Ports 6 and 4 connected", "Port 5 unregistered"] {
        let event = format!("{event}\n");
        eventually(&event, || monitor.stdout().contains(&event).then_some(()));
    }
    monitor.terminate();
}

#[test]
fn a_channel_that_is_disconnected_is_silent_until_it_is_connected_again() {
    in_three_attempts(|| {
        let server = server(256);
        let (player, played) = playing(&server);
        sleep(Duration::from_millis(300));
        server.run("jack_disconnect", &[LEFT, "system:playback_1"]).expect_success();
        sleep(Duration::from_millis(300));
        server.run("jack_connect", &[LEFT, "system:playback_1"]).expect_success();
        sleep(Duration::from_millis(300));
        let heard = heard(server, player)?;
        let same = |channel: usize| {
            let pairs = heard.channels[channel].iter().zip(&played.channels[channel]);
            pairs.map(|(heard, played)| heard == played).collect::<Vec<bool>>()
        };
        let (left, right) = (same(0), same(1));
        // It was ended somewhere.
        let end = right.iter().position(|same| !same).expect("an end");
        assert!(end > RATE_HZ as usize / 2, "{end} frames");
        let fades_out = left[..end].iter().position(|same| !same).expect("it was disconnected");
        let back = left[..end].iter().rposition(|same| !same).expect("it was connected") + 1;
        assert!(end - back > 1000, "it is back: {back} of {end}");
        let between = &heard.channels[0][fades_out..back];
        let silent = between.iter().filter(|sample| **sample == 0.0).count();
        // Each fade has 240 frames.
        assert_eq!(silent + 480, between.len(), "all of it is silent but for the fades");
        let louder = between.iter().zip(&played.channels[0][fades_out..]);
        assert!(
            louder.clone().all(|(heard, played)| heard.abs() < played.abs()),
            "and never louder"
        );
        Ok(())
    });
}

#[test]
fn a_change_is_heard_before_what_was_queued() {
    in_three_attempts(|| {
        let server = server(256);
        let (player, _) = playing(&server);
        // Two seconds are rendered ahead by now.
        sleep(Duration::from_millis(2500));
        server.run("jack_disconnect", &[LEFT, "system:playback_1"]).expect_success();
        sleep(Duration::from_millis(500));
        let heard = heard(server, player)?;
        let last = |channel: &[f32]| channel.iter().rposition(|sample| *sample != 0.0);
        let [left, right] = [0, 1].map(|channel| last(&heard.channels[channel]).expect("sound"));
        assert!(right - left > RATE_HZ as usize / 4, "{left} and {right}");
        Ok(())
    });
}

#[test]
fn a_channel_is_heard_where_it_is_connected() {
    in_three_attempts(|| {
        let server = server(256);
        let (player, played) = playing(&server);
        server.run("jack_connect", &[LEFT, "system:playback_2"]).expect_success();
        server.run("jack_disconnect", &[LEFT, "system:playback_1"]).expect_success();
        sleep(Duration::from_millis(500));
        let heard = heard(server, player)?;
        let sums =
            played.channels[0].iter().zip(&played.channels[1]).map(|(left, right)| left + right);
        let both = heard.channels[1].iter().zip(sums).map(|(heard, sum)| *heard == sum);
        let [left, both] = [
            heard.channels[0].iter().map(|sample| *sample == 0.0).collect(),
            both.collect::<Vec<bool>>(),
        ];
        let longest = |all: &[bool]| all.split(|same| !same).map(<[bool]>::len).max().unwrap_or(0);
        let together: Vec<bool> =
            left.iter().zip(&both).map(|(left, both): (&bool, &bool)| *left && *both).collect();
        assert!(longest(&together) > RATE_HZ as usize / 4, "{} frames", longest(&together));
        Ok(())
    });
}

#[test]
fn a_killed_program_leaves_no_client() {
    let server = server(256);
    let (player, _) = playing(&server);
    player.signal(Signal::KILL);
    drop(player.finish());
    eventually("it is gone", || (!server.lsp(&[]).contains("consort play")).then_some(()));
}

#[test]
fn connections_are_kept_by_name() {
    let server = server(256);
    let state = server.directory().join("state.json").to_string_lossy().into_owned();
    let saved = server.directory().join("saved.json").to_string_lossy().into_owned();
    let server = Server::start(&["--driver", "timer", "--quantum", "256", "--state", &state]);
    let (player, _) = playing(&server);
    server.run("jack_disconnect", &[LEFT, "system:playback_1"]).expect_success();
    server.run("jack_connect", &[LEFT, "system:playback_2"]).expect_success();
    let changed = [pair(LEFT, "system:playback_2"), pair(RIGHT, "system:playback_2")];
    assert_eq!(connections(&server), changed);
    player.terminate();
    await_no_stream(&server);
    let (player, _) = playing(&server);
    assert_eq!(connections(&server), changed, "as they were when it ended");

    server.consort(&["save", &saved]).expect_success();
    server.run("jack_disconnect", &[LEFT, "system:playback_2"]).expect_success();
    server.run("jack_disconnect", &[RIGHT, "system:playback_2"]).expect_success();
    server.consort(&["restore", &saved]).expect_success();
    assert_eq!(connections(&server), changed);

    for port in [LEFT, RIGHT] {
        server.run("jack_disconnect", &[port, "system:playback_2"]).expect_success();
    }
    player.terminate();
    await_no_stream(&server);
    let _player = playing(&server);
    let default = [pair(LEFT, "system:playback_1"), pair(RIGHT, "system:playback_2")];
    assert_eq!(connections(&server), default, "a program without connections begins again");
}
