//! Other versions of the packages are installed while programs play.

use std::path::PathBuf;

use harness::{Program, eventually, eventually_within};

use super::built::{PACKAGES, Repackaged, tree_of_another_layout, wide_packages};
use super::debian::{Booted, Debian, Machine, PATIENCE};
use super::sounds::{await_program, expect_pulseaudio, expect_sound};
use super::{AUDIO_TOOLS, install};

/// A later version than any.
const LATER: &str = "99.0";

/// An earlier version than any.
const EARLIER: &str = "0.0.1";

/// A program of JACK and one of PulseAudio, that the user has started.
pub(crate) struct Playing {
    pub(crate) metronome: Program,
    pub(crate) player: Program,
}

/// What plays, and what it plays through.
#[derive(Debug, PartialEq, Eq)]
struct Processes {
    server: String,
    front_end: String,
    programs: String,
}

impl Playing {
    pub(crate) fn start(booted: &Booted) -> Self {
        let metronome = booted.user_starts("exec jack_metro --bpm 300");
        await_program(booted, "metro");
        let player = booted.user_starts("exec pacat --raw /dev/zero");
        await_player(booted);
        Self { metronome, player }
    }
}

fn await_player(booted: &Booted) {
    eventually("the player of PulseAudio plays", || {
        booted.user("jack_lsp").stdout.contains("pacat:output_FL\n").then_some(())
    });
}

fn processes(booted: &Booted) -> Processes {
    let process =
        |unit| booted.user(&format!("systemctl --user show --property MainPID {unit}")).stdout;
    Processes {
        server: process("consort.service"),
        front_end: process("consort-pulse.service"),
        programs: booted.user("pgrep jack_metro; pgrep pacat").stdout,
    }
}

fn version(booted: &Booted) -> String {
    booted.run("dpkg-query --show --showformat '${Version}' consort").stdout
}

/// Programs keep playing while the packages are replaced by a later version, and then by that which
/// was there before; each time, another server takes them over.
pub(crate) fn expect_upgrade_and_downgrade_while_it_plays(debian: &Debian, booted: &Booted) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let later = Repackaged { version: LATER, tree: None }.make(&PACKAGES, directory.path());
    let first = version(booted);
    let playing = Playing::start(booted);
    for (packages, expected) in [(&later, LATER), (&*PACKAGES, &first)] {
        let before = processes(booted);
        debian.take(packages);
        booted.run(&install("--allow-downgrades")).expect_success();
        assert_eq!(version(booted), expected);
        await_program(booted, "metro");
        await_player(booted);
        let after = processes(booted);
        assert_ne!(after.server, before.server, "{expected}: another server runs");
        let expected = Processes { server: after.server.clone(), ..before };
        assert_eq!(after, expected, "the same programs play, through the same front end");
    }
    drop(playing);
    booted.user("pkill jack_metro; pkill pacat").expect_success();
    eventually("the front end ends with its server and its programs", || {
        // While it has not noticed that its last program has gone, it has the next server started.
        booted.user("consort stop");
        let state = booted.user("systemctl --user is-active consort-pulse.service").stdout;
        (state == "inactive\n").then_some(())
    });
}

#[test]
#[ignore = "minutes: it builds everything once more; cargo test --test packages -- --ignored"]
fn thoroughly_after_an_upgrade_from_another_memory_layout() {
    let Some(debian) = Debian::make() else { return };
    let (tree, directory) = (tree_of_another_layout(), tempfile::tempdir().expect("a directory"));
    let current = wide_packages();
    let earlier = Repackaged { version: EARLIER, tree: Some(tree.path()) };
    debian.take(&earlier.make(&current, directory.path()));
    debian.run(&install(AUDIO_TOOLS)).expect_success();
    let Some(booted) = debian.boot() else { return };
    let Playing { mut metronome, player } = Playing::start(&booted);
    let before = processes(&booted);
    upgrade(&debian, &booted, &current);

    let reason = "the program uses memory layout 0, this server ";
    eventually("the program of JACK says what to do", || {
        let printed = metronome.stderr();
        (printed.contains(reason) && printed.contains("restart the older")).then_some(())
    });
    let ended = player.finish();
    assert_ne!(ended.code, Some(0), "its connection has ended: {ended:?}");
    drop(metronome);
    booted.user("pkill jack_metro").expect_success();
    // What is started now plays, and nothing that runs is of the version before.
    expect_pulseaudio(&debian, &booted);
    expect_sound(&debian, &booted);
    let old = "readlink /proc/[0-9]*/exe | grep 'consort.*deleted'";
    eventually_within(PATIENCE, "no process of the version before runs", || {
        booted.run(old).stdout.is_empty().then_some(())
    });
    assert_ne!(processes(&booted), before);
    booted.power_off();
}

fn upgrade(debian: &Debian, booted: &Booted, packages: &[PathBuf]) {
    assert_eq!(version(booted), EARLIER);
    debian.take(packages);
    booted.run(&install("")).expect_success();
    assert_ne!(version(booted), EARLIER);
}
