//! Within the grace: all is as it was.

use harness::{Program, Server, eventually};
use rustix::process::Signal;

use crate::stage::{MODES, Stage, Witness};

#[test]
fn clients_of_a_killed_server_are_again_what_they_were_with_the_next_one_and_sound() {
    for mode in MODES {
        let mut stage = Stage::new(mode);
        let before = stage.picture();
        let counted = stage.counted();
        stage.server.kill();
        stage.server.start_again();
        stage.await_picture(&before);
        stage.await_cycles(300);
        stage.await_picture(&before);
        // A few more may have been begun while the server was killed.
        stage.expect_sound_after(counted + 50);
    }
}

#[test]
fn ten_deaths_in_a_row_change_nothing() {
    let mut stage = Stage::new(MODES[1]);
    let before = stage.picture();
    let mut counted = stage.counted();
    for _ in 0..10 {
        stage.server.kill();
        stage.server.start_again();
        stage.await_picture(&before);
        stage.await_cycles(50);
        counted += 50;
    }
    stage.await_cycles(300);
    stage.expect_sound_after(counted);
}

#[test]
fn a_server_that_dies_while_clients_return_loses_nothing_of_what_they_were() {
    let mut stage = Stage::new(MODES[1]);
    let before = stage.picture();
    let counted = stage.counted();
    stage.server.kill();
    for _ in 0..5 {
        // Some of the clients are back, maybe, and some are not.
        stage.server.start_again();
        stage.server.kill();
    }
    stage.server.start_again();
    stage.await_picture(&before);
    stage.await_cycles(300);
    stage.expect_sound_after(counted + 50);
}

#[test]
fn clients_whose_neighbours_came_and_went_before_the_death_sound_after_it() {
    let mut stage = Stage::new(MODES[1]);
    let before = stage.picture();
    // With each that goes, they have a fresh signal page.
    for _ in 0..3 {
        let neighbour = stage.server.probe(&["thru", "neighbour"]);
        stage.server.await_port("neighbour:out");
        for input in ["within:in", "after:in"] {
            stage.server.consort(&["connect", "neighbour:out", input]).expect_success();
        }
        stage.await_cycles(20);
        neighbour.terminate();
        stage.await_picture(&before);
        stage.await_cycles(20);
    }
    let counted = stage.counted();
    stage.server.kill();
    stage.server.start_again();
    stage.await_picture(&before);
    stage.await_cycles(300);
    stage.expect_sound_after(counted + 50);
}

#[test]
fn a_stopped_server_goes_on_when_it_is_continued_and_nobody_is_told_of_an_end() {
    for mode in [MODES[1], MODES[3]] {
        let mut stage = Stage::new(mode);
        let before = stage.picture();
        let counted = stage.counted();
        stage.server.program().signal(Signal::STOP);
        // Longer than any wait of a client's for its turn.
        std::thread::sleep(std::time::Duration::from_secs(2));
        stage.server.program().signal(Signal::CONT);
        stage.await_picture(&before);
        stage.await_cycles(300);
        stage.expect_sound_after(counted + 50);
    }
}

/// Programs of Debian's, and the connection by which each is known to be there.
fn debian_programs(server: &Server) -> Vec<Program> {
    let bridge = {
        let mut command = server.command("meterbridge");
        command.env("SDL_VIDEODRIVER", "dummy").args(["-t", "dpm", "-n", "bridge", "system:capture_1"]);
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
fn programs_of_debian_go_on_with_the_next_server() {
    for mode in MODES {
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
            let status = server.consort(&["status", "--json"]).expect_success().stdout;
            let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
            let clients = status["clients"].as_array().expect("clients").clone();
            let runs = |client: &serde_json::Value| client["timing"]["cycles"].as_u64() > Some(20);
            (clients.len() == 3 && clients.iter().all(runs)).then_some(())
        });
    }
}

#[test]
fn a_witness_that_was_stopped_meanwhile_returns_when_it_is_continued() {
    let mut stage = Stage::new(MODES[1]);
    let before = stage.picture();
    let counted = stage.counted();
    let stopped = &stage.witnesses[0].program;
    stopped.signal(Signal::STOP);
    stage.server.kill();
    stage.server.start_again();
    eventually("the others are back", || stage.server.lsp(&[]).contains("after:in").then_some(()));
    stage.witnesses[0].program.signal(Signal::CONT);
    stage.await_picture(&before);
    stage.await_cycles(300);
    stage.expect_sound_after(counted + 50);
}

#[test]
fn a_client_is_told_of_another_quantum_before_it_runs_a_cycle_of_that_length() {
    let mut server = Server::timer(256);
    let mut witness = Witness::start(&server, &["witness", "system:capture_1"]);
    let before = witness.state();
    server.kill();
    server.start_another(&["--quantum", "128"]);
    eventually("it is back", || witness.state().contains("quantum 128").then_some(()));
    server.await_connection("system:capture_1", "witness:in");
    assert!(before.contains("quantum 256"), "{before}");
    assert_eq!(witness.lines("quantum "), ["256", "128"]);
    let seen = witness.seen();
    assert!(seen.ran > 0 && seen.unknown == 0 && seen.backwards == 0, "{seen:?}");
}
