//! What is heard of programs of each kind in the graph, with nothing set.

use harness::{Program, Sound, eventually, tone};

use super::debian::{Booted, Debian};

/// A user logs in, and starts a program of JACK: that is all.
pub(crate) fn expect_first_program_starts_a_server(debian: &Debian, booted: &Booted) {
    let examined = booted.user("consort doctor").stdout;
    assert!(examined.contains("  the first program starts it\n"), "{examined}");
    let before = booted.user("systemctl --user is-active consort.service");
    let why = "systemctl --user status consort* -n 40; ps -e -o ppid,pid,args --forest";
    assert_eq!(before.stdout, "inactive\n", "it is not needed yet: {:?}", booted.user(why));
    expect_sound(debian, booted);
    let linked = booted.user("ldd $(command -v jack_metro)").expect_success().stdout;
    assert!(linked.contains("/consort/libjack.so.0"), "{linked}");
    let examined = booted.user("consort doctor").stdout;
    assert!(examined.starts_with("good   libjack "), "{examined}");
}

/// A server that is started by hand while systemd waits for the first program: after it, the next
/// program has systemd start one.
pub(crate) fn expect_server_by_hand_gives_the_socket_back(booted: &Booted) {
    let by_hand = booted.user_starts("exec consort run --driver timer");
    eventually("it has taken the place of systemd's socket", || {
        let script = "test -S $XDG_RUNTIME_DIR/consort/default/waiting && consort status";
        (booted.user(script).code == Some(0)).then_some(())
    });
    booted.user("consort stop").expect_success();
    by_hand.finish().expect_success();
    let active = "systemctl --user is-active consort.service";
    assert_eq!(booted.user(active).stdout, "inactive\n");
    booted.user("consort status").expect_success();
    assert_eq!(booted.user(active).stdout, "active\n");
    booted.user("consort stop").expect_success();
}

/// What a metronome plays into the graph is recorded there by another program.
pub(crate) fn expect_sound(debian: &Debian, booted: &Booted) {
    let metronome = booted.user_starts("exec jack_metro --bpm 300");
    await_program(booted, "metro");
    let script = "rm -f recorded.wav; jack_rec -f recorded.wav -d 2 -b 32 metro:300_bpm";
    booted.user(script).expect_success();
    let recorded = Sound::read(&debian.path("/home/musician/recorded.wav"));
    assert!(recorded.peak(0) > 0.1, "the metronome is heard: {}", recorded.peak(0));
    drop(metronome);
    booted.user("pkill jack_metro; consort stop").expect_success();
}

/// Until a client of this name runs in the graph.
pub(crate) fn await_program(booted: &Booted, name: &str) {
    eventually(&format!("{name} runs in the graph"), || {
        let status = booted.user("consort status").stdout;
        let mut lines = status.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.any(|words| words.starts_with(&[name]) && words.contains(&"active")).then_some(())
    });
}

/// A program of PulseAudio plays in the same graph, with nothing set either.
pub(crate) fn expect_pulseaudio(debian: &Debian, booted: &Booted) {
    write_tone(debian);
    let server = booted.user("pactl info").expect_success().stdout;
    assert!(server.contains("Server Name: consort\n"), "{server}");
    let mut playing = booted.user_starts("exec paplay tone.wav");
    let port = await_connected(booted, "paplay:output_FL", &mut playing);
    expect_tone(debian, booted, &port, TONE_HZ);
    drop(playing);
    booted.user("pkill paplay; consort stop").expect_success();
}

/// Frequency of what [`write_tone`] writes, Hz.
pub(crate) const TONE_HZ: f64 = 440.0;

/// A file `tone.wav` of 20 s in the user's home.
pub(crate) fn write_tone(debian: &Debian) {
    let channels = [TONE_HZ, 660.0].map(|hz| tone(hz, 48_000, 960_000));
    Sound::of(48_000, &channels).write(&debian.path("/home/musician/tone.wav"));
}

/// The port whose name contains `words`, once it is connected to the device. `playing` is its
/// program.
pub(crate) fn await_connected(booted: &Booted, words: &str, playing: &mut Program) -> String {
    eventually(&format!("{words} is connected to the device"), || {
        assert!(playing.is_running(), "{words}: {}", playing.stderr());
        let ports = booted.user("jack_lsp -c").stdout;
        let mut lines = ports.lines().zip(ports.lines().skip(1));
        let is_of_program = |port: &str| port.contains(words) && !port.starts_with(' ');
        let found = lines.find(|(port, to)| is_of_program(port) && *to == "   system:playback_1");
        found.map(|(port, _)| port.to_owned())
    })
}

/// A program of JACK that records a port hears a tone of this frequency, Hz.
pub(crate) fn expect_tone(debian: &Debian, booted: &Booted, port: &str, expected_hz: f64) {
    booted.user(&format!("jack_rec -f heard.wav -d 2 -b 32 '{port}'")).expect_success();
    let heard = Sound::read(&debian.path("/home/musician/heard.wav")).sounding(0);
    let heard_hz = most_frequent_hz(&heard.channels[0]);
    assert!((heard_hz - expected_hz).abs() < 5.0, "{port}: {heard_hz} Hz");
}

/// The frequency of a tone with gaps, as there are on a busy machine: that of most parts, Hz.
pub(crate) fn most_frequent_hz(samples: &[f32]) -> f64 {
    let parts = samples.chunks(2400).map(|part| Sound::of(48_000, &[part.to_vec()]));
    let mut parts_hz: Vec<f64> = parts.map(|part| part.frequency_hz(0)).collect();
    parts_hz.sort_by(f64::total_cmp);
    parts_hz.get(parts_hz.len() / 2).copied().unwrap_or(0.0)
}

/// Programs of ALSA play in the same graph, with nothing set: on its default device as streams, and
/// on the device `jack` as clients with cycles.
pub(crate) fn expect_alsa(debian: &Debian, booted: &Booted) {
    await_sink(booted);
    for (device, player) in [("", "[aplay]:output_FL"), ("-D plug:jack", "aplay.P.")] {
        let mut playing = booted.user_starts(&format!("exec aplay --quiet {device} tone.wav"));
        let port = await_connected(booted, player, &mut playing);
        expect_tone(debian, booted, &port, TONE_HZ);
        drop(playing);
        booted.user("pkill aplay");
    }
    // Without the session's socket there is no server to play on, and no card here either.
    let alone = booted.user("env -u XDG_RUNTIME_DIR aplay --quiet tone.wav");
    assert!(alone.stderr.contains("sysdefault") || alone.stderr.contains("card"), "{alone:?}");
}

/// After a server has been stopped, its front end has a sink again once it has found the next one.
pub(crate) fn await_sink(booted: &Booted) {
    eventually("there is a device to play on", || {
        booted.user("pactl list short sinks").stdout.contains("consort").then_some(())
    });
}
