//! Servers that come within the grace period: everything is as it was.

use harness::{MODES, Program, Server, c_program, eventually, modes};
use proto::status::ClientStatus;
use rustix::process::Signal;

use crate::scenario::{Scenario, Witness};

#[test]
fn clients_of_a_killed_server_return_to_the_next_one() {
    for mode in modes() {
        let mut scenario = Scenario::new(mode);
        let before = scenario.picture();
        let counted = scenario.counted();
        scenario.server.kill();
        scenario.server.start_again();
        scenario.await_picture(&before);
        scenario.await_cycles(300);
        scenario.await_picture(&before);
        // A few more may have been begun while the server was killed.
        scenario.expect_sound_after(counted + 50);
    }
}

#[test]
fn ten_deaths_in_a_row_change_nothing() {
    let mut scenario = Scenario::new(MODES[1]);
    let before = scenario.picture();
    let mut counted = scenario.counted();
    for _ in 0..10 {
        scenario.server.kill();
        scenario.server.start_again();
        scenario.await_picture(&before);
        scenario.await_cycles(50);
        counted += 50;
    }
    scenario.await_cycles(300);
    scenario.expect_sound_after(counted);
}

#[test]
fn a_server_that_dies_while_clients_return_loses_nothing() {
    let mut scenario = Scenario::new(MODES[1]);
    let before = scenario.picture();
    let counted = scenario.counted();
    scenario.server.kill();
    for _ in 0..5 {
        // Some of the clients are back, maybe, and some are not.
        scenario.server.start_again();
        scenario.server.kill();
    }
    scenario.server.start_again();
    scenario.await_picture(&before);
    scenario.await_cycles(300);
    scenario.expect_sound_after(counted + 50);
}

#[test]
fn clients_with_replaced_signal_pages_return_as_well() {
    let mut scenario = Scenario::new(MODES[1]);
    let before = scenario.picture();
    // Each client that leaves gives them a fresh signal page.
    for _ in 0..3 {
        let neighbour = scenario.server.probe(&["thru", "neighbour"]);
        scenario.server.await_port("neighbour:out");
        for input in ["within:in", "after:in"] {
            scenario.server.consort(&["connect", "neighbour:out", input]).expect_success();
        }
        scenario.await_cycles(20);
        neighbour.terminate();
        scenario.await_picture(&before);
        scenario.await_cycles(20);
    }
    let counted = scenario.counted();
    scenario.server.kill();
    scenario.server.start_again();
    scenario.await_picture(&before);
    scenario.await_cycles(300);
    scenario.expect_sound_after(counted + 50);
}

#[test]
fn a_stopped_server_continues_without_a_shutdown() {
    for mode in [MODES[1], MODES[3]] {
        let mut scenario = Scenario::new(mode);
        let before = scenario.picture();
        let counted = scenario.counted();
        scenario.server.program().signal(Signal::STOP);
        // Longer than any client waits for its turn.
        std::thread::sleep(std::time::Duration::from_secs(2));
        scenario.server.program().signal(Signal::CONT);
        scenario.await_picture(&before);
        scenario.await_cycles(300);
        scenario.expect_sound_after(counted + 50);
    }
}

/// Programs from Debian, each with the connection that shows its presence.
fn debian_programs(server: &Server) -> Vec<Program> {
    let bridge = {
        let mut command = server.command("meterbridge");
        command.env("SDL_VIDEODRIVER", "dummy").args([
            "-t",
            "dpm",
            "-n",
            "bridge",
            "system:capture_1",
        ]);
        Program::start(command)
    };
    let metro = server.spawn("jack_metro", &["-b", "120"]);
    let simple = server.spawn("jack_simple_client", &["simple"]);
    server.await_connection("system:capture_1", "bridge:meter_1");
    server.await_connection("simple:output1", "system:playback_1");
    server.await_port("metro:120_bpm");
    server.consort(&["connect", "metro:120_bpm", "bridge:meter_1"]).expect_success();
    vec![bridge, metro, simple]
}

#[test]
fn programs_of_debian_continue_with_the_next_server() {
    for mode in modes() {
        let mut server = Server::start(mode);
        let mut programs = debian_programs(&server);
        let sorted = |server: &Server| {
            let listed = server.lsp(&["-c", "-p", "-t", "-U"]);
            let mut lines: Vec<String> = listed.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let before = sorted(&server);
        server.kill();
        server.start_again();
        let mut now = Vec::new();
        eventually("all is as before", || {
            now = sorted(&server);
            (now == before).then_some(())
        });
        for program in &mut programs {
            assert!(program.is_running(), "{}", program.stderr());
        }
        eventually("all of them run cycles", || {
            let clients = server.status().clients;
            let runs =
                |client: &ClientStatus| client.timing.is_some_and(|timing| timing.cycles > 20);
            (clients.len() == 3 && clients.iter().all(runs)).then_some(())
        });
    }
}

#[test]
fn a_stopped_client_returns_when_it_is_continued() {
    let mut scenario = Scenario::new(MODES[1]);
    let before = scenario.picture();
    let counted = scenario.counted();
    let stopped = &scenario.witnesses[0].program;
    stopped.signal(Signal::STOP);
    scenario.server.kill();
    scenario.server.start_again();
    eventually("the others are back", || scenario.server.has_ports("after").then_some(()));
    scenario.witnesses[0].program.signal(Signal::CONT);
    scenario.await_picture(&before);
    scenario.await_cycles(300);
    scenario.expect_sound_after(counted + 50);
}

#[test]
fn a_new_quantum_is_announced_before_its_first_cycle() {
    let mut server = Server::timer(256);
    let mut witness = Witness::start(&server, &["witness", "system:capture_1"]);
    let before = witness.state();
    server.kill();
    server.start_another(&["--quantum", "128"]);
    // It has the new quantum before it is notified, on another thread.
    eventually("it is notified", || (witness.lines("quantum ").len() > 1).then_some(()));
    server.await_connection("system:capture_1", "witness:in");
    let after = witness.state();
    assert!(before.contains("quantum 256") && after.contains("quantum 128"), "{before}, {after}");
    assert_eq!(witness.lines("quantum "), ["256", "128"]);
    let seen = witness.seen();
    assert!(seen.ran > 0 && seen.unknown == 0 && seen.backwards == 0, "{seen:?}");
}

#[test]
fn a_client_that_has_changed_its_environment_returns() {
    let mut server = Server::timer(256);
    let mut command = server.command(&c_program("restart/moved.c"));
    command.arg("moved");
    let mut client = Program::start(command);
    eventually("the client is active", || client.stdout().contains("ready\n").then_some(()));
    server.kill();
    server.start_again();
    eventually("it is back", || server.client("moved").map(drop));
    assert!(client.is_running(), "{}", client.stderr());
}
