//! Plug-ins that fail: the program that loaded them gets an error, nothing of them is left, and all
//! others continue.

use std::time::{Duration, Instant};

use harness::{Judge, Program, Server, eventually, judged, modes, not_run};

use crate::plug_ins::{await_end, has_ports, hosts, let_cycles_pass, load, server, unload};

/// A source and a monitor that must not be disturbed.
struct Bystanders {
    _source: Program,
    monitor: Program,
    /// `None`: this machine tells no stall from a loss.
    judge: Option<Judge>,
}

/// Cycles that they may lose without a stall of the machine to explain it: chance may strike once.
const MOST_LOST: u64 = 1;

impl Bystanders {
    fn at(server: &Server) -> Self {
        let source = server.probe(&["source", "bystander"]);
        let judge = Judge::of_cycles(server.status().quantum);
        let monitor = server.probe(&["monitor", "monitor", "--from", "bystander:out"]);
        let_cycles_pass(server);
        Self { _source: source, monitor, judge }
    }

    /// Checks that they are clients as before, and that no cycle of theirs was lost.
    /// What was lost is an error.
    fn lost_nothing(self, server: &Server) -> Result<(), String> {
        server.await_connection("monitor:in", "bystander:out");
        let_cycles_pass(server);
        let Some(judge) = self.judge else {
            self.monitor.terminate().expect_success();
            not_run("no real-time priority here: what the bystanders lost is not judged");
            return Ok(());
        };
        judge.judge(self.monitor).expect("next to a plug-in that fails", MOST_LOST)
    }
}

/// Runs `bad` beside bystanders, in the modes in which faults are tried.
fn in_modes(bad: impl Fn(&mut Server)) {
    for mode in modes() {
        with_bystanders(mode, &bad);
    }
}

/// Runs `bad` beside bystanders: they lose nothing that a server without it does not lose as well.
fn with_bystanders(mode: &[&str], bad: impl Fn(&mut Server)) {
    let quiet = |server: &mut Server, length: Duration| {
        let end = Instant::now() + length;
        while Instant::now() < end {
            let_cycles_pass(server);
        }
    };
    let beside = |bad: &dyn Fn(&mut Server)| {
        let mut server = server(mode);
        let bystanders = Bystanders::at(&server);
        bad(&mut server);
        bystanders.lost_nothing(&server)
    };
    judged(
        "next to a plug-in that fails",
        || beside(&bad),
        |length| beside(&|server: &mut Server| quiet(server, length)),
    );
}

#[test]
fn a_plug_in_that_fails_in_jack_initialize_leaves_nothing() {
    with_bystanders(&[], |server| {
        for (fault, words) in [
            ("refuse", "returned 7"),
            ("initialize-crash", "crashed"),
            ("initialize-exit", "crashed"),
            ("initialize-hang", "did not come to the end"),
        ] {
            let refused = load(server, "culprit", "plug_in", fault);
            assert_ne!(refused.code, Some(0), "{fault}");
            // JackFailure and JackInitFailure.
            assert!(
                refused.stderr.contains("0x101") && refused.stderr.contains(words),
                "{fault}: {refused:?}"
            );
            assert!(!has_ports(server, "culprit"), "{fault}");
            assert_eq!(hosts(server), [0; 0], "{fault}");
        }
    });
}

#[test]
fn a_plug_in_that_hangs_in_jack_initialize_delays_no_other() {
    let mut server = server(&[]);
    let mut hanging = server.spawn("jack_load", &["-i", "initialize-hang", "hanging", "plug_in"]);
    eventually("its process runs", || (hosts(&mut server).len() == 1).then_some(()));
    load(&server, "other", "plug_in", "").expect_success();
    unload(&server, "other").expect_success();
    assert!(hanging.is_running(), "{}", hanging.stderr());
    assert_ne!(hanging.finish().code, Some(0));
}

#[test]
fn a_plug_in_that_ends_in_a_cycle_harms_no_other() {
    in_modes(|server| {
        for (fault, words) in
            [("process-crash", "was ended by signal 11"), ("process-exit", "has ended by itself")]
        {
            load(server, "culprit", "plug_in", fault).expect_success();
            let _ = server.run("jack_connect", &["bystander:out", "culprit:in"]);
            eventually(&format!("the server says that {fault} happened"), || {
                server.program().stderr().contains(words).then_some(())
            });
            assert!(!has_ports(server, "culprit"), "{fault}");
            assert!(unload(server, "culprit").stderr.contains("not found"), "{fault}");
            assert_eq!(hosts(server), [0; 0], "{fault}");
            // Its name is free.
            load(server, "culprit", "plug_in", "").expect_success();
            unload(server, "culprit").expect_success();
        }
    });
}

#[test]
fn a_plug_in_that_hangs_or_crashes_can_be_unloaded() {
    in_modes(|server| {
        for fault in ["process-hang", "finish-crash", "finish-exit", "finish-hang"] {
            load(server, "culprit", "plug_in", fault).expect_success();
            let processes = hosts(server);
            assert_eq!(processes.len(), 1, "{fault}");
            server.run("jack_connect", &["bystander:out", "culprit:in"]).expect_success();
            let unloaded = unload(server, "culprit").expect_success();
            assert!(unloaded.stdout.contains("culprit unloaded."), "{fault}: {unloaded:?}");
            assert!(!has_ports(server, "culprit"), "{fault}");
            await_end(&processes);
        }
    });
}

#[test]
fn a_loader_that_goes_away_leaves_its_plug_in_running() {
    let mut server = server(&[]);
    load(&server, "left", "plug_in", "").expect_success();
    assert_eq!(hosts(&mut server).len(), 1);
    assert!(has_ports(&server, "left"), "jack_load has ended");
    unload(&server, "left").expect_success();
}
