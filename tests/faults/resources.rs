//! Clients that take all they can get, and a machine that has nothing left.

use harness::{Server, eventually, in_three_attempts};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::stage::{MODES, Stage, expect_undisturbed, withstand};

fn expect_nothing_lost(stage: Stage, what: &str) -> Result<(), String> {
    let (beside, fed) = stage.counts();
    expect_undisturbed(what, beside)?;
    expect_undisturbed(what, fed)
}

#[test]
fn a_client_that_asks_the_server_without_end_disturbs_nobody_in_the_graph_and_keeps_nobody_out() {
    for mode in MODES {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "flood");
            stage.strike();
            eventually("it floods", || stage.victim.stdout().contains("flooding\n").then_some(()));
            for _ in 0..3 {
                stage.expect_new_clients_to_work();
                stage.await_cycles(200);
            }
            expect_nothing_lost(stage, "flood")
        });
    }
}

#[test]
fn a_client_without_a_descriptor_left_is_not_connected_anew_and_disturbs_nobody() {
    for mode in MODES {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "no-descriptors");
            stage.strike();
            eventually("it has none left", || {
                stage.victim.stdout().contains("no descriptors\n").then_some(())
            });
            stage.expect_new_clients_to_work();
            // It would have to map the memory of this one, and to be mapped by it.
            let _another = stage.server.probe(&["source", "another"]);
            stage.server.consort(&["connect", "another:out", "victim:in"]).expect_success();
            stage.server.consort(&["disconnect", "another:out", "victim:in"]).expect_success();
            stage.await_cycles(200);
            stage.expect_new_clients_to_work();
            expect_nothing_lost(stage, "no descriptors")
        });
    }
}

/// Descriptors that the server has open.
fn descriptors(server: &mut Server) -> usize {
    let path = format!("/proc/{}/fd", server.program().id());
    std::fs::read_dir(path).expect("the server runs").count()
}

#[test]
fn a_client_that_keeps_every_descriptor_that_it_is_given_disturbs_nobody_and_costs_the_server_none() {
    for mode in MODES {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "keep-descriptors");
            // It sends silence, which changes no sample.
            let another = stage.server.probe(&["follow", "another"]);
            let reader = stage.server.probe(&["thru", "reader"]);
            let before = descriptors(&mut stage.server);
            for _ in 0..10 {
                stage.server.consort(&["connect", "another:out", "victim:in"]).expect_success();
                stage.server.consort(&["connect", "victim:out", "reader:in"]).expect_success();
                stage.server.consort(&["disconnect", "victim:out", "reader:in"]).expect_success();
                stage.server.consort(&["disconnect", "another:out", "victim:in"]).expect_success();
            }
            stage.expect_new_clients_to_work();
            eventually("the server has as many descriptors as before", || {
                (descriptors(&mut stage.server) <= before).then_some(())
            });
            for gone in [another, reader] {
                gone.terminate().expect_success();
            }
            stage.await_cycles(200);
            stage.expect_new_clients_to_work();
            expect_nothing_lost(stage, "keep descriptors")
        });
    }
}

/// Sets how much address space the server may use: what it has and so many bytes more; gives the limit before.
fn limit_memory(server: &mut Server, more: Option<u64>) -> Rlimit {
    let process = Pid::from_raw(i32::try_from(server.program().id()).expect("a process id"));
    let limit = match more {
        None => Rlimit { current: None, maximum: None },
        Some(more) => Rlimit { current: Some(address_space(server) + more), maximum: None },
    };
    prlimit(process, Resource::As, limit).expect("a process of this user")
}

fn address_space(server: &mut Server) -> u64 {
    let path = format!("/proc/{}/status", server.program().id());
    let status = std::fs::read_to_string(path).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn a_server_without_memory_for_new_segments_refuses_newcomers_in_words_and_goes_on() {
    for mode in [MODES[1], MODES[3]] {
        in_three_attempts(|| {
            let mut stage = Stage::new(mode, "none");
            // Less than the orders of one client.
            limit_memory(&mut stage.server, Some(16 * 1024));
            for _ in 0..3 {
                let refused = stage.server.run("jack_simple_client", &["newcomer"]);
                assert_ne!(refused.code, Some(0), "{refused:?}");
                assert!(refused.stderr.contains("no memory for another client"), "{refused:?}");
            }
            stage.await_cycles(200);
            limit_memory(&mut stage.server, None);
            stage.expect_new_clients_to_work();
            stage.await_cycles(100);
            expect_nothing_lost(stage, "no memory")
        });
    }
}
