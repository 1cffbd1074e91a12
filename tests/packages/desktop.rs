//! A desktop that needs PipeWire: it stays, for cameras and screens.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::debian::{Booted, Debian, Machine};

/// What stands for a desktop's metapackage: like Debian's gnome-core, it needs PipeWire's sound.
const CONTROL: &str = "\
Package: desktop
Version: 1
Architecture: all
Maintainer: nobody <nobody@consort.invalid>
Depends: pipewire-audio
Description: what depends on PipeWire
";

/// PipeWire and the desktop, which have come from Debian before our packages.
pub(crate) fn install(debian: &Debian) {
    let directory = TempDir::with_prefix("consort-desktop-").expect("a temporary directory");
    let content = directory.path().join("desktop");
    fs::create_dir_all(content.join("DEBIAN")).expect("a directory");
    fs::write(content.join("DEBIAN/control"), CONTROL).expect("written");
    let package = debian.path("/opt/desktop.deb");
    let built = Command::new("dpkg-deb").arg("--build").args([&content, &package]).output();
    assert!(built.expect("dpkg-deb runs").status.success());
    debian
        .run("apt-get install --quiet=2 --yes --no-install-recommends /opt/desktop.deb")
        .expect_success();
    assert_eq!(installed(debian), ["desktop", "pipewire", "pipewire-audio", "pipewire-pulse"]);
}

/// Whether our settings are there: for its session manager, those of version 0.4, and of 0.5; and
/// for itself.
fn settings(machine: &impl Machine) -> [bool; 4] {
    [
        "wireplumber/main.lua.d/51-consort.lua",
        "wireplumber/bluetooth.lua.d/51-consort.lua",
        "wireplumber/wireplumber.conf.d/51-consort.conf",
        "pipewire/pipewire.conf.d/51-consort.conf",
    ]
    .map(|file| machine.run(&format!("test -e /usr/share/{file}")).code == Some(0))
}

/// Our packages have replaced PipeWire's sound, and nothing else of the desktop.
pub(crate) fn expect_pipewire_without_sound(debian: &Debian) {
    assert_eq!(settings(debian), [true; 4]);
    assert_eq!(installed(debian), ["desktop", "pipewire"]);
    let unneeded = debian.run("apt-get autoremove --simulate").expect_success().stdout;
    for needed in ["pipewire", "wireplumber", "desktop"] {
        assert!(!unneeded.contains(&format!("Remv {needed} ")), "{unneeded}");
    }
}

/// PipeWire itself leaves the graph alone while programs play in it: it would become a program of
/// JACK, and hang until it is one.
pub(crate) fn expect_pipewire_outside_the_graph(booted: &Booted) {
    let answered = booted.user("timeout 2 pw-cli info 0").expect_success().stdout;
    assert!(answered.contains("module.jackdbus-detect = \"false\""), "{answered}");
    let said = booted.user("journalctl --user --no-pager -u pipewire").expect_success().stdout;
    assert!(!said.contains("jack"), "{said}");
}

/// The way back: PipeWire's sound replaces our packages, and the desktop misses nothing meanwhile.
pub(crate) fn expect_pipewire_takes_sound_back(booted: &Booted) {
    let script = "apt-get install --quiet=2 --yes --no-install-recommends pipewire-audio";
    booted.run(script).expect_success();
    assert_eq!(installed(booted), ["desktop", "pipewire", "pipewire-audio", "pipewire-pulse"]);
    assert_eq!(settings(booted), [false; 4]);
}

/// Those of a desktop's packages that are installed.
fn installed(machine: &impl Machine) -> Vec<String> {
    let names = "desktop pipewire pipewire-audio pipewire-pulse";
    let script = format!("dpkg-query --show --showformat '${{Status}} ${{Package}}\\n' {names}");
    let listed = machine.run(&script).stdout;
    let names = listed.lines().filter_map(|line| line.strip_prefix("install ok installed "));
    names.map(str::to_owned).collect()
}

/// For the user who logs in, PipeWire answers, and its session manager has read what our package
/// says: it asks for no card.
pub(crate) fn expect_session_manager_without_cards(booted: &Booted) {
    let script = "systemctl --user stop wireplumber; \
                  WIREPLUMBER_DEBUG=3 timeout 5 wireplumber 2>&1; pw-cli info 0";
    let printed = booted.user(script).expect_success().stdout;
    assert!(printed.contains("/usr/share/wireplumber/main.lua.d/51-consort.lua"), "{printed}");
    assert!(printed.contains("/usr/share/wireplumber/bluetooth.lua.d/51-consort.lua"), "{printed}");
    assert!(printed.contains("enabling plugin 'default-nodes'"), "{printed}");
    assert!(!printed.contains("enabling plugin 'reserve-device'"), "{printed}");
}
