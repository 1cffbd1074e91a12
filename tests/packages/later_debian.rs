//! The packages on the libraries of a later Debian, and beside its WirePlumber.

use std::fs;

use super::built::wide_packages;
use super::debian::{Booted, Debian, Machine};
use super::{AUDIO_TOOLS, desktop, install, sounds};

/// The settings of a user who wants sound from PipeWire as well.
const OVERRIDE: &str = "/etc/wireplumber/wireplumber.conf.d/51-consort.conf";

/// Where a user has settings, such as those of one who wants headsets from PipeWire.
const HEADSETS: &str = ".config/wireplumber/wireplumber.conf.d";

#[test]
#[ignore = "minutes: another Debian; cargo test --test packages -- --ignored"]
fn thoroughly_on_debian_13() {
    let Some(debian) = Debian::make_of("trixie") else { return };
    let Some(booted) = expect_use(&debian, "jack-example-tools") else { return };
    expect_session_manager_without_cards(&debian, &booted);
    booted.power_off();
}

/// The packages are installed beside a desktop's PipeWire, and programs of each kind play through
/// them, also JACK's own from the package `examples`. The machine, which has booted.
pub(crate) fn expect_use(debian: &Debian, examples: &str) -> Option<Booted> {
    debian.take(&wide_packages());
    desktop::install(debian);
    debian.run(&install(&format!("{AUDIO_TOOLS} {examples}"))).expect_success();
    desktop::expect_pipewire_without_sound(debian);
    let booted = debian.boot()?;
    sounds::expect_first_program_starts_a_server(debian, &booted);
    sounds::expect_pulseaudio(debian, &booted);
    sounds::expect_alsa(debian, &booted);
    desktop::expect_pipewire_outside_the_graph(&booted);
    Some(booted)
}

/// WirePlumber 0.5 looks for cameras alone, unless the user says otherwise.
pub(crate) fn expect_session_manager_without_cards(debian: &Debian, booted: &Booted) {
    let version = booted.user("wireplumber --version").expect_success().stdout;
    assert!(version.contains("libwireplumber 0.5."), "{version}");
    booted.user("systemctl --user stop wireplumber").expect_success();
    assert_eq!(monitors(booted), ["libcamera", "v4l2"]);
    let settings = "wireplumber.profiles = { main = { monitor.bluez = optional } }";
    let write = format!("mkdir -p {HEADSETS} && echo '{settings}' >{HEADSETS}/52-headsets.conf");
    booted.user(&write).expect_success();
    assert_eq!(monitors(booted), ["bluez", "libcamera", "v4l2"]);
    booted.user(&format!("rm {HEADSETS}/52-headsets.conf")).expect_success();
    let file = debian.path(OVERRIDE);
    fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    fs::write(file, "").expect("written");
    let all = ["alsa", "alsa-midi", "bluez", "bluez-midi", "libcamera", "v4l2"];
    assert_eq!(monitors(booted), all);
}

/// The monitors of devices that a session manager loads when it starts.
fn monitors(booted: &Booted) -> Vec<String> {
    let printed = booted.user("WIREPLUMBER_DEBUG=3 timeout 5 wireplumber 2>&1; pw-cli info 0");
    let printed = printed.expect_success().stdout;
    let scripts =
        printed.lines().filter_map(|line| line.split_once("enabling plugin 'script:monitors/"));
    let names = scripts.filter_map(|(_, script)| script.split(['/', '.']).next());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}
