//! Other versions of the packages are installed while programs play.

use harness::{Program, eventually};

use super::built::{PACKAGES, Repackaged};
use super::debian::{Booted, Debian, Machine};
use super::install;
use super::sounds::await_program;

/// A later version than any.
const LATER: &str = "99.0";

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
    let later = Repackaged { version: LATER }.make(&PACKAGES, directory.path());
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
