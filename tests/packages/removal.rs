//! The packages are replaced by PipeWire's sound, and purged.

use harness::eventually;

use super::debian::{Booted, Debian, Machine};
use super::desktop;
use super::sounds::await_program;
use super::versions::Playing;

/// Servers and front ends end when their packages go, and systemd does not try to start what is no
/// longer there.
pub(crate) fn expect_removal_while_it_plays(booted: &Booted) {
    let Playing { metronome, player } = Playing::start(booted);
    desktop::expect_pipewire_takes_sound_back(booted);
    let ended = player.finish();
    assert_ne!(ended.code, Some(0), "its connection has ended: {ended:?}");
    assert_eq!(units(booted, "consort-pulse"), INACTIVE);
    expect_server_of_pulseaudio(booted, "pipewire-pulse", "PulseAudio (on PipeWire ");
    await_program(booted, "metro");
    booted.run("rm -r /opt/packages && apt-get purge --yes '?name(consort)'").expect_success();
    assert_eq!(units(booted, "consort"), INACTIVE);
    eventually("all processes of the packages have ended", || {
        booted.run("readlink /proc/[0-9]*/exe | grep consort").stdout.is_empty().then_some(())
    });
    drop(metronome);
    booted.user("pkill jack_metro").expect_success();
    // The desktop that needs PipeWire's sound goes with it.
    booted.run("apt-get install --yes --no-install-recommends pulseaudio").expect_success();
    expect_server_of_pulseaudio(booted, "pulseaudio", "pulseaudio\n");
}

/// Programs of PulseAudio find another server, as after the user's next login.
fn expect_server_of_pulseaudio(booted: &Booted, unit: &str, name: &str) {
    let start = format!("systemctl --user daemon-reload; systemctl --user start {unit}.socket");
    let told = booted.user(&format!("{start}; pactl info")).expect_success().stdout;
    assert!(told.contains(&format!("Server Name: {name}")), "{told}");
}

const INACTIVE: &str = "inactive\ninactive\n";

/// Whether a socket and its service are active.
fn units(booted: &Booted, name: &str) -> String {
    booted.user(&format!("systemctl --user is-active {name}.socket {name}.service")).stdout
}

/// Without the packages, Debian's JACK has all of its files, and nothing of ours remains.
pub(crate) fn expect_nothing_left(debian: &Debian) {
    let verified = debian.run("dpkg --verify jackd2 libjack-jackd2-0").expect_success();
    assert_eq!(verified.stdout, "", "files of Debian's JACK differ");
    let linked = debian.run("ldd $(command -v jack_metro)").expect_success().stdout;
    assert!(linked.contains("libjack.so.0 => /lib/x86_64-linux-gnu/libjack.so.0"), "{linked}");
    let found = debian
        .run("find / -xdev -path /proc -prune -o -name '*consort*' -print; getent group realtime");
    assert_eq!(found.stdout, "", "something remains");
}
