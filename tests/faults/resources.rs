//! Clients that take all that they can get, and a machine that has nothing left.

use std::process::Command;

use harness::{Counts, MODES, Server, c_program, eventually, modes};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tempfile::TempDir;

use crate::scenario::{Scenario, judged};

fn expect_nothing_lost(scenario: Scenario, what: &str) -> Result<(), String> {
    let most_lost = scenario.most_lost;
    scenario.expect_bystander_undisturbed(what)?.fed.expect(what, most_lost)
}

#[test]
fn a_client_that_floods_the_server_with_requests_disturbs_no_other() {
    for mode in modes() {
        judged(mode, || {
            let mut scenario = Scenario::new(mode, "flood");
            scenario.trigger_fault();
            eventually("it floods", || {
                scenario.victim.stdout().contains("flooding\n").then_some(())
            });
            for _ in 0..3 {
                scenario.expect_new_clients_to_work();
                scenario.await_cycles(200);
            }
            expect_nothing_lost(scenario, "flood")
        });
    }
}

#[test]
fn a_client_without_a_descriptor_left_disturbs_no_other() {
    for mode in modes() {
        judged(mode, || {
            let mut scenario = Scenario::new(mode, "no-descriptors");
            scenario.trigger_fault();
            eventually("it has none left", || {
                scenario.victim.stdout().contains("no descriptors\n").then_some(())
            });
            scenario.expect_new_clients_to_work();
            // It would have to map the memory of this one, and to be mapped by it.
            let _another = scenario.server.probe(&["source", "another"]);
            scenario.server.consort(&["connect", "another:out", "victim:in"]).expect_success();
            eventually("its user learns why it hears nothing", || {
                let said = scenario.victim.stderr();
                said.contains("'victim' gets no memory of another client").then_some(())
            });
            scenario.server.consort(&["disconnect", "another:out", "victim:in"]).expect_success();
            scenario.await_cycles(200);
            scenario.expect_new_clients_to_work();
            expect_nothing_lost(scenario, "no descriptors")
        });
    }
}

/// Descriptors that the server has open.
fn descriptors(server: &mut Server) -> usize {
    let path = format!("/proc/{}/fd", server.program().id());
    std::fs::read_dir(path).expect("the server runs").count()
}

#[test]
fn a_client_that_keeps_every_descriptor_costs_the_server_none() {
    for mode in modes() {
        judged(mode, || {
            let mut scenario = Scenario::new(mode, "keep-descriptors");
            // It sends silence, which changes no sample.
            let another = scenario.server.probe(&["follow", "another"]);
            let reader = scenario.server.probe(&["thru", "reader"]);
            let before = descriptors(&mut scenario.server);
            for _ in 0..10 {
                scenario.server.consort(&["connect", "another:out", "victim:in"]).expect_success();
                scenario.server.consort(&["connect", "victim:out", "reader:in"]).expect_success();
                scenario
                    .server
                    .consort(&["disconnect", "victim:out", "reader:in"])
                    .expect_success();
                scenario
                    .server
                    .consort(&["disconnect", "another:out", "victim:in"])
                    .expect_success();
            }
            scenario.expect_new_clients_to_work();
            eventually("the server has as many descriptors as before", || {
                (descriptors(&mut scenario.server) <= before).then_some(())
            });
            for gone in [another, reader] {
                gone.terminate().expect_success();
            }
            scenario.await_cycles(200);
            scenario.expect_new_clients_to_work();
            expect_nothing_lost(scenario, "keep descriptors")
        });
    }
}

/// Limits the server's address space to what it has and this many bytes more; returns the previous
/// limit.
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
fn a_server_without_memory_refuses_new_clients_with_the_reason() {
    for mode in [MODES[1], MODES[3]] {
        judged(mode, || {
            let mut scenario = Scenario::new(mode, "none");
            // Less than the assignments of one client.
            limit_memory(&mut scenario.server, Some(16 * 1024));
            for _ in 0..3 {
                let refused = scenario.server.run("jack_simple_client", &["newcomer"]);
                assert_ne!(refused.code, Some(0), "{refused:?}");
                assert!(refused.stderr.contains("no memory for another client"), "{refused:?}");
            }
            scenario.await_cycles(200);
            limit_memory(&mut scenario.server, None);
            scenario.expect_new_clients_to_work();
            scenario.await_cycles(100);
            expect_nothing_lost(scenario, "no memory")
        });
    }
}

/// Lets the command be started by a program that has the kernel refuse to populate more than this
/// many bytes at once.
fn refuse_to_populate(command: &mut Command, bytes: u32) {
    let mut outer = Command::new(c_program("faults/without_memory.c"));
    outer.arg(bytes.to_string()).arg(command.get_program()).args(command.get_args());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(command.get_current_dir().expect("set"));
    *command = outer;
}

#[test]
fn a_server_without_memory_for_a_client_s_samples_refuses_to_play_them() {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let refuse = |command: &mut Command| refuse_to_populate(command, 0);
    let server = Server::start_with(directory, &["--quantum", "64"], refuse);
    let _source = server.probe(&["source", "source"]);
    let refused = server.consort(&["connect", "source:out", "system:playback_1"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let reason = "'source:out' cannot be heard: the kernel has no memory for 4096 bytes";
    assert!(refused.stderr.contains(reason), "{refused:?}");
    let checker = server.probe(&["check", "check", "--from", "source:out"]);
    server.await_cycles(200);
    let counts = Counts::of(checker);
    assert!(counts.good > 100 && counts.wrong == 0, "{counts:?}");
}

#[test]
fn a_server_without_memory_for_longer_cycles_reports_what_is_not_played() {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let refuse = |command: &mut Command| refuse_to_populate(command, 4096);
    let mut server = Server::start_with(directory, &["--quantum", "64"], refuse);
    let _source = server.probe(&["source", "source"]);
    server.consort(&["connect", "source:out", "system:playback_1"]).expect_success();
    server.run("jack_bufsize", &["4096"]).expect_success();
    let reason = "'source:out' is not heard at 'system:playback_1'";
    eventually("it is reported", || server.program().stderr().contains(reason).then_some(()));
    let checker = server.probe(&["check", "check", "--from", "source:out"]);
    server.await_cycles(50);
    let counts = Counts::of(checker);
    assert!(counts.good > 20 && counts.wrong == 0, "{counts:?}");
}
