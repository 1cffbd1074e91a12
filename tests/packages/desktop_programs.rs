//! Programs of a desktop, from Debian's packages, in one graph.

use std::fs;

use harness::Sound;

use super::built::wide_packages;
use super::debian::{Booted, Debian, Machine};
use super::sounds::{TONE_HZ, await_connected, await_program, expect_tone, write_tone};
use super::{AUDIO_TOOLS, DESKTOP_PROGRAMS, install};

/// A page that plays as soon as it is shown.
const PAGE: &str = "<!doctype html><title>tone</title><script>
const context = new AudioContext();
const tone = new OscillatorNode(context, { frequency: 880 });
tone.connect(context.destination);
tone.start();
</script>";

/// Frequency of what the page plays, Hz.
const PAGE_HZ: f64 = 880.0;

/// A page may play without a click; nothing else differs from a new profile.
const PREFERENCES: &str = "user_pref(\"media.autoplay.default\", 0);\n\
                           user_pref(\"media.autoplay.blocking_policy\", 0);\n";

/// Commands, the port on which each plays, and its frequency, Hz; those that play on without an end
/// come first.
const PLAYERS: [(&str, &str, f64); 4] = [
    ("firefox-esr --headless --profile profile page.html", "irefox:output_FL", PAGE_HZ),
    ("mpv --no-video --loop=inf tone.wav", "mpv:output_FL", TONE_HZ),
    ("paplay tone.wav", "paplay:output_FL", TONE_HZ),
    ("aplay --quiet tone.wav", "[aplay]:output_FL", TONE_HZ),
];

#[test]
#[ignore = "minutes: it installs a desktop's programs; cargo test --test packages -- --ignored"]
fn thoroughly_with_desktop_programs_in_one_graph() {
    let Some(debian) = Debian::make() else { return };
    debian.take(&wide_packages());
    debian.run(&install(DESKTOP_PROGRAMS)).expect_success();
    expect_no_other_server_installed(&debian);
    expect_our_library(&debian);
    debian.run(&install(AUDIO_TOOLS)).expect_success();
    write_tone(&debian);
    let home = debian.path("/home/musician");
    fs::write(home.join("page.html"), PAGE).expect("written");
    fs::create_dir(home.join("profile")).expect("a directory");
    fs::write(home.join("profile/user.js"), PREFERENCES).expect("written");
    debian.run("chown --recursive musician: /home/musician").expect_success();

    let Some(booted) = debian.boot() else { return };
    expect_all_in_one_graph(&debian, &booted);
    booted.power_off();
    // After a restart of the machine as well.
    let Some(booted) = debian.boot() else { return };
    expect_all_in_one_graph(&debian, &booted);
    booted.power_off();
}

fn expect_no_other_server_installed(debian: &Debian) {
    let names = "jackd1 jackd2 pulseaudio pipewire pipewire-pulse pipewire-jack";
    let script = format!("dpkg-query --show --showformat '${{Status}} ${{Package}}\\n' {names}");
    let found = debian.run(&script).stdout;
    assert!(!found.contains("install ok installed"), "{found}");
}

/// Programs that need a screen get our library: QjackCtl is linked with it, and Ardour opens it by
/// its name.
fn expect_our_library(debian: &Debian) {
    let linked = debian.run("ldd /usr/bin/qjackctl").expect_success().stdout;
    assert!(linked.contains("/consort/libjack.so.0"), "{linked}");
    let known = debian.run("ldconfig --print-cache").expect_success().stdout;
    let first = known.lines().find(|line| line.contains("libjack.so.0 ")).expect("a library");
    assert!(first.ends_with("/consort/libjack.so.0"), "{first}");
}

/// All of them play at the same time, each is heard, and all on one device.
fn expect_all_in_one_graph(debian: &Debian, booted: &Booted) {
    let metronome = booted.user_starts("exec jack_metro --bpm 300");
    await_program(booted, "metro");
    booted.user("jack_connect metro:300_bpm system:playback_1").expect_success();
    let mut ports = vec!["metro:300_bpm".to_owned()];
    let playing = PLAYERS.map(|(command, words, _)| {
        let mut program = booted.user_starts(&format!("exec {command}"));
        ports.push(await_connected(booted, words, &mut program));
        program
    });
    for ((.., expected_hz), port) in PLAYERS.iter().zip(&ports[1..]) {
        expect_tone(debian, booted, port, *expected_hz);
    }
    booted.user("jack_rec -f heard.wav -d 2 -b 32 metro:300_bpm").expect_success();
    assert!(Sound::read(&debian.path("/home/musician/heard.wav")).peak(0) > 0.1, "the metronome");
    let connected = booted.user("jack_lsp -c system:playback_1").expect_success().stdout;
    for port in &ports {
        assert!(connected.contains(&format!("   {port}\n")), "{port}: {connected}");
    }
    drop((metronome, playing));
    booted.user("pkill jack_metro; pkill mpv; pkill aplay; pkill firefox; consort stop");
}
