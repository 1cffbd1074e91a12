//! The Debian packages, on a fresh Debian 12: installed, used by a user who logs in, upgraded,
//! downgraded and purged.
#![forbid(unsafe_code)]

mod built;
mod debian;
mod desktop;
mod desktop_programs;
mod development;
mod flatpaks;
mod headsets;
mod later_debian;
mod narrow;
mod realtime_group;
mod removal;
mod screen;
mod settings;
mod sounds;
mod ubuntu;
mod versions;

use built::{PACKAGES, wide_packages};
use debian::{Booted, Debian, Machine};

/// Installs what lies in the machine's directory of packages, with the packages that are named.
fn install(with: &str) -> String {
    format!("apt-get install --quiet=2 --yes --no-install-recommends /opt/packages/*.deb {with}")
}

/// Programs that a musician adds to the packages.
const DESKTOP_PROGRAMS: &str = "qjackctl ardour mpv firefox-esr pavucontrol";

/// What `apt-get` would install of other sound servers.
const OTHER_SERVERS: [&str; 6] =
    ["jackd1", "jackd2 ", "pulseaudio ", "pipewire ", "pipewire-pulse", "pipewire-jack"];

/// Tools of JACK, PulseAudio and ALSA that play, record and show what does. The example programs of
/// JACK come with its server, which may be installed beside ours.
const AUDIO_TOOLS: &str = "jackd2 pulseaudio-utils alsa-utils";

#[test]
fn programs_play_through_the_packages_without_configuration() {
    let Some(debian) = Debian::make() else { return };
    let narrow = PACKAGES.iter().find(|package| narrow::is_narrow(package));
    debian.take(&wide_packages());
    expect_no_second_server(&debian);
    desktop::install(&debian);
    debian.run(&install(AUDIO_TOOLS)).expect_success();
    desktop::expect_pipewire_without_sound(&debian);
    development::expect_build(&debian);
    narrow::install(&debian, narrow);
    expect_notices(&debian);
    realtime_group::expect_device(&debian);

    let Some(booted) = debian.boot() else { return };
    sounds::expect_first_program_starts_a_server(&debian, &booted);
    sounds::expect_server_by_hand_gives_the_socket_back(&booted);
    sounds::expect_pulseaudio(&debian, &booted);
    sounds::expect_alsa(&debian, &booted);
    development::expect_sound(&booted);
    narrow::expect_sound(&debian, &booted);
    desktop::expect_session_manager_without_cards(&booted);
    expect_dbus(&booted);
    expect_setup(&booted);
    versions::expect_upgrade_and_downgrade_while_it_plays(&debian, &booted);
    booted.power_off();

    let Some(booted) = debian.boot() else { return };
    sounds::expect_sound(&debian, &booted);
    removal::expect_removal_while_it_plays(&booted);
    booted.power_off();

    removal::expect_nothing_left(&debian);
}

/// Programs that need a JACK, or bring one along, bring no server.
fn expect_no_second_server(debian: &Debian) {
    let script = format!("apt-get install --simulate /opt/packages/*.deb {DESKTOP_PROGRAMS}");
    let simulated = debian.run(&script).expect_success().stdout;
    assert!(simulated.contains("Inst libjack-consort0 "), "{simulated}");
    for server in OTHER_SERVERS {
        assert!(!simulated.contains(&format!("Inst {server}")), "{server}: {simulated}");
    }
}

/// The licences of what is linked are in the packages that have it.
fn expect_notices(debian: &Debian) {
    for (package, linked) in [("consort", "plotters 0."), ("libjack-consort0", "rustix 1.")] {
        let file = format!("/usr/share/doc/{package}/third-party-notices.txt.gz");
        let text = debian.run(&format!("zcat {file}")).expect_success().stdout;
        assert!(text.contains(&format!("\n{linked}")), "{package}");
        assert!(text.contains("\nthe standard library of rustc "), "{package}");
    }
}

/// Debian's tool for jackdbus finds ours.
fn expect_dbus(booted: &Booted) {
    let printed = booted.user("jack_control start && jack_control status").expect_success().stdout;
    assert!(printed.contains("started"), "{printed}");
    booted.user("jack_control exit").expect_success();
}

/// Root sets the user up for a studio: the server has the options, the user the right. And undone.
fn expect_setup(booted: &Booted) {
    let machine = || {
        let list = "-printf '%p %y %m %u\\n' | sort";
        let (home, ours) = ("/home/musician/.config /home/musician/.local", "-name '*consort*'");
        let script = format!("find {home} {list}; find /etc /var/lib {ours} {list}");
        booted.run(&format!("cat /etc/group /etc/gshadow; {script}")).stdout
    };
    let before = machine();
    let setup = "consort setup --user musician";
    booted.run(&format!("{setup} --card none --for studio --yes")).expect_success();
    assert!(booted.run("id -nG musician").stdout.contains("realtime"));
    // As the command says: a server that runs keeps the options that it was started with.
    booted.user("consort stop; jack_lsp").expect_success();
    let status = booted.user("consort status").expect_success().stdout;
    assert!(status.contains("quantum  128 frames"), "{status}");
    booted.run(&format!("{setup} --undo")).expect_success();
    let after = machine();
    assert_eq!(after, before);
}
