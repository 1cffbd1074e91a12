//! The server's volume of streams and of the device: set by other programs, heard at once.

use harness::{Server, eventually, in_three_attempts};

use crate::programs::{FADE, Player, TEN_MS, assert_continuous, level, plateaus};
use crate::{RATE_HZ, await_playing, file, play, server, streams};

/// Runs a command; returns the device frames that were heard before it and after it.
fn between(player: &mut Player, command: &[&str]) -> (usize, usize) {
    let before = player.heard();
    player.server.consort(command).expect_success();
    let after = player.heard();
    player.await_heard(after + 4 * TEN_MS);
    (before as usize, after as usize)
}

#[test]
fn a_volume_of_a_stream_or_the_device_is_heard_at_once_with_two_seconds_queued() {
    in_three_attempts(|| {
        let mut player = Player::start(&level(0.5, 5 * RATE_HZ as usize));
        player.await_deep();
        let commands: [(&[&str], f32); 6] = [
            (&["volume", "by hand", "50%"], 0.25),
            (&["mute", "by"], 0.0),
            (&["unmute", "1"], 0.25),
            (&["volume", "device", "0.5"], 0.125),
            (&["mute", "device"], 0.0),
            (&["unmute", "device"], 0.125),
        ];
        let changed: Vec<_> =
            commands.map(|(command, level)| (between(&mut player, command), level)).into();
        let recorded = player.recorded()?;
        for (channel, sign) in recorded.channels.iter().zip([1.0, -1.0]) {
            let sounding = channel.iter().position(|sample| *sample != 0.0).expect("sound");
            assert_continuous(&channel[sounding..], 0.5);
            let expected = [0.5, 0.25, 0.0, 0.25, 0.125, 0.0, 0.125].map(|level| sign * level);
            let found = plateaus(&channel[sounding..], FADE);
            if found.get(..7) != Some(&expected[..]) {
                return Err(format!("{found:?}"));
            }
        }
        for ((before, after), level) in changed {
            let channel = &recorded.channels[0];
            assert_ne!(channel[before], level, "before the command was started");
            // It takes a fade from within ten milliseconds after the command's end.
            let late = after + TEN_MS as usize + FADE;
            if channel[late] != level {
                return Err(format!("{} at frame {late}, not {level}", channel[late]));
            }
        }
        Ok(())
    });
}

#[test]
fn the_devices_volume_is_that_of_the_graph_as_well() {
    let server = Server::recording(&["--quantum", "256"]);
    // It counts, in steps of 2^-21.
    let source = server.probe(&["source", "source"]);
    server.consort(&["connect", "source:out", "system:playback_1"]).expect_success();
    for volume in ["100%", "50%", "200%", "100%"] {
        server.consort(&["volume", "device", volume]).expect_success();
        server.await_cycles(40);
    }
    source.terminate();
    let recorded = server.recorded();
    let steps: Vec<f32> =
        recorded.channels[0].windows(2).map(|pair| (pair[1] - pair[0]) * 2_097_152.0).collect();
    // A ramp and a cycle that came too late are shorter, and have other steps.
    let mut volumes = plateaus(&steps, 512);
    volumes.retain(|step| *step != 0.0);
    volumes.dedup();
    assert_eq!(volumes, [1.0, 0.5, 2.0, 1.0]);
}

#[test]
fn volumes_are_shown_and_changed_by_steps() {
    let server = server(256);
    let path = file(&server, "song.wav", &level(0.5, 30 * RATE_HZ as usize));
    let player = play(&server, &path, &[]);
    await_playing(&server);
    let shown = |arguments: &[&str]| {
        server.consort(&[&["volume"], arguments].concat()).expect_success().stdout
    };
    assert_eq!(shown(&[]), "device: 100 % (0.0 dB)\n1: consort play: song.wav: 100 % (0.0 dB)\n");
    assert_eq!(shown(&["consort", "-6dB"]), "1: consort play: song.wav: 50.1 % (-6.0 dB)\n");
    assert_eq!(shown(&["CONSORT PLAY", "+3dB"]), "1: consort play: song.wav: 70.8 % (-3.0 dB)\n");
    assert_eq!(shown(&["1", "0.5"]), "1: consort play: song.wav: 50 % (-6.0 dB)\n");
    assert_eq!(shown(&["1", "-10%"]), "1: consort play: song.wav: 40 % (-8.0 dB)\n");
    server.consort(&["mute", "1"]).expect_success();
    assert_eq!(shown(&["1"]), "1: consort play: song.wav: 40 % (-8.0 dB), muted\n");
    server.consort(&["volume", "device", "200 %"]).expect_success();
    let status = server.consort_json(&["status"]);
    assert_eq!(
        (&status["device_volume"], &status["streams"][0]["muted"]),
        (&2.0.into(), &true.into())
    );
    let text = server.consort(&["status"]).expect_success().stdout;
    assert!(text.contains("volume 200 % (6.0 dB)") && text.contains("(-8.0 dB), muted"), "{text}");
    for (arguments, code, words) in [
        (&["volume", "2", "50%"][..], 1, "there is no stream 2"),
        (&["mute", "mpv"], 1, "no program 'mpv' has a stream"),
        (&["volume", "1", "loud"], 2, "'loud' is not a volume"),
        (&["volume", "1", "17"], 2, "out of range"),
        (&["volume", "--card", "x", "1", "50%"], 2, "--card takes"),
        (&["volume", "50%"], 1, "does not play on a sound card"),
    ] {
        let finished = server.consort(arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
    player.terminate();
    eventually("the stream has ended", || streams(&server).is_empty().then_some(()));
    let mut next = play(&server, &path, &[]);
    await_playing(&server);
    assert_eq!(streams(&server)[0]["volume"], 1.0, "another stream is another volume");
    assert!(next.is_running());
    next.terminate();
}
