//! Nothing in a cycle allocates, locks, logs or blocks: the guard is armed in the server and in
//! every program here, while the graph does everything that it can do.
#![forbid(unsafe_code)]

mod memory;
mod places;
mod sleeps;

use std::path::Path;

use harness::{Guard, Program, Server, binary, command_in, eventually};
use rustix::process::Signal;

#[test]
fn no_cycle_allocates_locks_or_blocks_while_the_graph_changes() {
    for options in [&["--quantum", "128"][..], &["--quantum", "128", "--sync"]] {
        let (mut server, guard) = Guard::server(options);
        let _source = guard.probe(&server, &["source", "source"]);
        let mut victim =
            guard.probe(&server, &["thru", "victim", "--from", "source:out", "--fault", "kill"]);
        let mut hung =
            guard.probe(&server, &["thru", "hung", "--from", "source:out", "--fault", "hang"]);
        let mut check = guard.probe(&server, &["check", "check", "--from", "victim:out"]);
        let mut metro = guard.spawn(&server, "jack_metro", &["-b", "240"]);
        server.await_port("metro:240_bpm");
        for _ in 0..20 {
            server.run("jack_connect", &["source:out", "check:in"]).expect_success();
            server.run("jack_connect", &["check:in", "metro:240_bpm"]).expect_success();
            server.run("jack_disconnect", &["source:out", "check:in"]).expect_success();
            server.run("jack_disconnect", &["check:in", "metro:240_bpm"]).expect_success();
        }
        // A loop, a client with itself, and two inputs with the same sources.
        for (source, destination) in
            [("hung:out", "victim:in"), ("victim:out", "hung:in"), ("victim:out", "victim:in")]
        {
            server.run("jack_connect", &[source, destination]).expect_success();
        }
        for frames in ["256", "64", "128"] {
            server.run("jack_bufsize", &[frames]).expect_success();
        }
        hung.signal(Signal::USR1);
        eventually("the hung client is left out", || {
            server.client("hung").is_some_and(|hung| hung.bypassed).then_some(())
        });
        victim.signal(Signal::USR1);
        eventually("the victim is dead", || (!victim.is_running()).then_some(()));
        for program in [&mut check, &mut metro, &mut hung] {
            assert!(program.is_running(), "{}", program.stderr());
        }
        assert!(server.program().is_running(), "{}", server.program().stderr());
        // The server, four probes, the metronome.
        assert_eq!(guard.guarded_processes(), 6);
    }
}

#[test]
fn no_cycle_allocates_or_locks_while_streams_come_and_go_and_are_patched() {
    let (mut server, guard) = Guard::server(&["--driver", "timer", "--quantum", "128"]);
    let song = server.directory().join("song.wav");
    harness::Sound::of(48_000, &[vec![0.5; 1_440_000], vec![0.25; 1_440_000]]).write(&song);
    let _listener = guard.probe(&server, &["thru", "listener"]);
    for _ in 0..3 {
        let player = server.spawn_consort(&["play", &song.to_string_lossy()]);
        let left = "consort play:output_FL";
        server.await_port(left);
        for _ in 0..5 {
            for (command, input) in [
                ("jack_connect", "listener:in"),
                ("jack_disconnect", "system:playback_1"),
                ("jack_connect", "system:playback_2"),
                ("jack_disconnect", "listener:in"),
                ("jack_disconnect", "system:playback_2"),
                ("jack_connect", "system:playback_1"),
            ] {
                server.run(command, &[left, input]).expect_success();
            }
        }
        server.run("jack_connect", &[left, "listener:in"]).expect_success();
        server.await_cycles(20);
        player.terminate();
    }
    assert!(server.program().is_running(), "{}", server.program().stderr());
    assert_eq!(guard.guarded_processes(), 2, "the server and the probe");
}

#[test]
fn a_conversion_that_exists_allocates_nothing() {
    Guard::run(Path::new(env!("CARGO_BIN_EXE_conversions")));
}

#[test]
fn cpu_idle_states_are_limited_while_a_client_runs() {
    // No other test has this quantum, and the kernel gives the least of all limits.
    let server = Server::start(&["--quantum", "32"]);
    let limit_us = || {
        let device = std::fs::read("/dev/cpu_dma_latency").expect("the kernel's device, as root");
        i32::from_ne_bytes(device.try_into().expect("a 32-bit integer"))
    };
    assert_ne!(limit_us(), 20, "no client runs");
    let client = server.probe(&["source", "source"]);
    assert!(limit_us() <= 20, "a thirty-second of 667 µs");
    drop(client);
    eventually("the limit is gone", || (limit_us() != 20).then_some(()));
}

#[test]
fn without_real_time_permission_the_server_warns_once() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let mut command = command_in(directory.path(), Path::new("prlimit"));
    command
        .args(["--rtprio=0", "setpriv", "--bounding-set", "-sys_nice"])
        .arg(binary("consort"))
        .args(["run", "--quantum", "1024"]);
    let mut server = Program::start(command);
    eventually("the server runs", || server.stderr().contains("runs: timer").then_some(()));
    assert_eq!(server.stderr().matches("audio.conf").count(), 1, "{}", server.stderr());
    let run = |words: &[&str]| {
        let mut command = command_in(directory.path(), &binary("consort"));
        command.args(words);
        Program::start(command).finish().expect_success().stdout
    };
    assert!(run(&["status"]).contains("not real-time"));
    let mut metro = Program::start({
        let mut command = command_in(directory.path(), Path::new("jack_metro"));
        command.args(["-b", "240"]);
        command
    });
    eventually("its port", || run(&["ls"]).contains("metro:240_bpm").then_some(()));
    assert!(metro.is_running() && !metro.stderr().contains("audio.conf"), "{}", metro.stderr());
}
