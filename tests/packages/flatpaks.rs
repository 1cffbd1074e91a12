//! Applications of Flatpak of a user who logs in, whose service manager gives each a control group.

use std::fs;

use harness::{Finished, eventually};

use super::built::wide_packages;
use super::debian::{Booted, Debian, Machine};
use super::sounds::{TONE_HZ, await_connected, await_sink, expect_tone, write_tone};
use super::{AUDIO_TOOLS, install};

const PLAYER: &str = "org.consort.Player";
/// What its id begins with is the other one's.
const SIMILAR: &str = "org.consort.Player-two";

/// Records what is heard. Here it ends by itself where it may.
const RECORD: &str = "timeout 3 parec --device=consort.monitor --raw | head --bytes=4096 | wc -c";

/// What makes an application a program of JACK.
const JACK: &str = "--filesystem=xdg-run/consort --filesystem=host-os \
                    --env=LD_LIBRARY_PATH=/run/host/usr/lib/x86_64-linux-gnu/consort";

#[test]
#[ignore = "minutes: a Debian with Flatpak; cargo test --test packages -- --ignored"]
fn thoroughly_with_applications_of_flatpak() {
    let Some(debian) = Debian::make() else { return };
    debian.take(&wide_packages());
    debian.run(&install(&format!("{AUDIO_TOOLS} flatpak"))).expect_success();
    write_tone(&debian);
    let script = debian.path("/home/musician/flatpak.sh");
    fs::write(script, include_str!("../pulse/flatpak.sh")).expect("written");

    let Some(booted) = debian.boot() else { return };
    // A user may mount /proc in a sandbox only where there is one of which nothing is covered.
    booted.run("mkdir /run/proc && mount -t proc proc /run/proc").expect_success();
    let programs = "sh head wc timeout sleep pactl paplay parec jack_metro";
    booted.user(&format!("sh flatpak.sh made {programs}")).expect_success();
    expect_playback(&debian, &booted);
    expect_records_where_a_rule_says_so(&booted);
    expect_jack(&debian, &booted);
    booted.power_off();
}

/// A command in the sandbox of an application.
fn inside(application: &str, options: &str, script: &str) -> String {
    format!("flatpak run {options} --command=sh {application} -c '{script}'")
}

/// The first program to play is one in a sandbox: its socket is systemd's.
fn expect_playback(debian: &Debian, booted: &Booted) {
    let play = inside(PLAYER, "--filesystem=~/tone.wav:ro", "exec paplay tone.wav");
    let mut playing = booted.user_starts(&format!("exec {play}"));
    let port = await_connected(booted, "paplay:output_FL", &mut playing);
    expect_tone(debian, booted, &port, TONE_HZ);
    let doctor = booted.user("consort doctor").stdout;
    assert!(doctor.contains("programs in Flatpaks play here\n"), "{doctor}");
    booted.user(&format!("flatpak kill {PLAYER}")).expect_success();
    drop(playing);
}

/// The rule is for the control group of one application.
fn expect_records_where_a_rule_says_so(booted: &Booted) {
    let record = |application| booted.user(&inside(application, "", RECORD));
    let is_refused =
        |tried: &Finished| tried.stderr.contains("Access denied") && tried.stdout.trim() == "0";
    await_sink(booted);
    let refused = record(PLAYER);
    assert!(is_refused(&refused), "{refused:?}");
    let rule = format!("allow=record cgroup=*/app-flatpak-{PLAYER}-*");
    let file = ".config/consort/desktop.rules";
    booted.user(&format!("mkdir -p .config/consort; echo '{rule}' >{file}")).expect_success();
    eventually("the rule is read", || (record(PLAYER).stdout.trim() == "4096").then_some(()));
    let refused = record(SIMILAR);
    assert!(is_refused(&refused), "{refused:?}");
    // Its id is escaped as names of units are.
    let rule = r"allow=record cgroup=*/app-flatpak-org.consort.Player\x2dtwo-*";
    booted.user(&format!("echo '{rule}' >{file}")).expect_success();
    eventually("the rule is read", || (record(SIMILAR).stdout.trim() == "4096").then_some(()));
}

/// With the server's sockets and the host's library, an application is a client of the graph.
fn expect_jack(debian: &Debian, booted: &Booted) {
    let play = inside(PLAYER, JACK, "exec jack_metro --bpm 300");
    let playing = booted.user_starts(&format!("exec {play}"));
    super::sounds::await_program(booted, "metro");
    let script = "rm -f heard.wav; jack_rec -f heard.wav -d 2 -b 32 metro:300_bpm";
    booted.user(script).expect_success();
    let heard = harness::Sound::read(&debian.path("/home/musician/heard.wav"));
    assert!(heard.peak(0) > 0.1, "the metronome is heard: {}", heard.peak(0));
    booted.user(&format!("flatpak kill {PLAYER}")).expect_success();
    drop(playing);
}
