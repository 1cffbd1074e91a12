//! Restricted programs do not get what the policy denies them, whichever program requests it.

use std::path::PathBuf;

use harness::{Program, Server, Sound, binary, eventually};
use proto::request::Request;
use tempfile::TempDir;

use crate::wire::{self, Wire, assert_says};

/// A server with these rules.
fn server(rules: &str, options: &[&str]) -> (Server, TempDir) {
    let (directory, path) = policy(rules);
    let path = path.to_string_lossy().into_owned();
    // Not one that plays back what it is sent: that would be the sound of others, too.
    let timer = ["--driver", "timer", "--quantum", "256", "--policy", &path];
    (Server::start(&[&timer, options].concat()), directory)
}

fn policy(rules: &str) -> (TempDir, PathBuf) {
    let directory = TempDir::with_prefix("consort-policy-").expect("room");
    let path = directory.path().join("policy");
    std::fs::write(&path, rules).expect("room");
    (directory, path)
}

/// Slabs that a process has mapped.
fn slabs(program: &Program) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.id())).expect("it runs");
    let slabs = maps.lines().filter(|line| line.contains("memfd:consort-slab"));
    let mut inodes: Vec<&str> = slabs.filter_map(|line| line.split_whitespace().nth(4)).collect();
    inodes.sort_unstable();
    inodes.dedup();
    inodes.len()
}

#[test]
fn memory_of_others_needs_the_permission_to_record() {
    let (server, _policy) = server("capture exe=*/victim\n", &[]);
    let _source = server.probe(&["source", "source"]);
    let victim = server.directory().join("victim");
    let probe = server.probe_command(&[]).get_program().to_owned();
    std::fs::copy(probe, &victim).expect("room");
    let mut command = server.command(&victim.to_string_lossy());
    command.args(["thru", "restricted"]);
    let mut restricted = Program::start(command);
    eventually("it is ready", || restricted.stdout().contains("ready\n").then_some(()));
    let refused = server.consort(&["connect", "source:out", "restricted:in"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_says(
        "recording",
        &refused.stderr,
        &["does not allow", "'restricted:in'", "to hear other clients"],
    );
    server.consort(&["connect", "system:capture_1", "restricted:in"]).expect_success();
    server.consort(&["connect", "restricted:out", "system:playback_1"]).expect_success();
    eventually("it hears the driver, and has its own memory", || {
        (slabs(&restricted) == 2).then_some(())
    });
    let listener = server.probe(&["thru", "listener", "--from", "source:out"]);
    eventually("another may hear", || (slabs(&listener) == 2).then_some(()));
    assert_eq!(slabs(&restricted), 2);
}

#[test]
fn what_others_play_needs_the_permission_to_record_at_a_monitor() {
    for (options, port) in [(&["--monitors"][..], "monitor_1"), (&["--loop"], "capture_1")] {
        let (server, _policy) = server("capture exe=*/probe\n", options);
        let _restricted = server.probe(&["thru", "restricted"]);
        let refused = server.consort(&["connect", &format!("system:{port}"), "restricted:in"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert_says(port, &refused.stderr, &["does not allow", "to hear other clients"]);
    }
    let (server, _policy) = server("capture exe=*/probe\n", &["--monitors"]);
    let restricted = server.probe(&["thru", "restricted"]);
    server.consort(&["connect", "system:capture_1", "restricted:in"]).expect_success();
    eventually("it has its own memory and that of the capture ports alone", || {
        (slabs(&restricted) == 2).then_some(())
    });
}

#[test]
fn with_a_policy_a_web_page_needs_a_token() {
    let (_directory, path) = policy("nothing cgroup=*/test.scope\n");
    let mut command = std::process::Command::new(binary("consort"));
    command.args(["run", "-n", "under-policy", "--web", "127.0.0.1:0", "--policy"]).arg(&path);
    let refused = Program::start(command).finish();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_says("the page", &refused.stderr, &["--web-token-file", "with its own permissions"]);
}

#[test]
fn without_the_permission_to_patch_a_program_changes_only_its_own() {
    let rules =
        "nothing exe=*/jack_connect\nconnect,record exe=*/probe\nnothing exe=*/bad_input-*\n";
    let (server, _policy) = server(rules, &[]);
    let _source = server.probe(&["source", "source"]);
    // It may connect its own ports.
    let _listener = server.probe(&["thru", "listener", "--from", "source:out"]);
    let refused = server.run("jack_connect", &["listener:out", "system:playback_1"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(
        !server.lsp(&["-c"]).contains("listener:out\n   system:playback_1"),
        "nothing was connected"
    );
    let refused = server.consort(&["connect", "listener:out", "system:playback_1"]);
    assert_eq!(refused.code, Some(0), "another program may: {refused:?}");
    let reply = Wire::observer(&server).ask(Request::RecomputeLatencies);
    assert_says(
        "one with nothing to be latent",
        &wire::refused(reply),
        &["policy does not allow", "latencies"],
    );
    let mut swapping = server.probe(&["swap", "swapping", "--to", "system:playback_1"]);
    eventually("it connects its own port", || swapping.stdout().contains("swapped").then_some(()));
    let deaf = server.probe_command(&["check", "deaf", "--from", "system:capture_1"]);
    let deaf = Program::start(deaf).finish();
    assert_eq!(deaf.code, Some(1), "it may not hear what is captured: {deaf:?}");
}

#[test]
fn stopping_the_server_needs_the_permission_to_control() {
    let rules = "everything,x exe=*/consort\n";
    let (_directory, path) = policy(rules);
    let mut command = std::process::Command::new(binary("consort"));
    command.args(["run", "-n", "misruled", "--policy"]).arg(&path);
    let refused = Program::start(command).finish();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_says("a rule", &refused.stderr, &["line 1 is no rule", "everything,x"]);

    let (mut server, _policy) =
        self::server("patch,record,capture exe=*/consort\nnothing exe=*/jack_bufsize\n", &[]);
    for words in [&["stop"][..], &["transport", "start"]] {
        let refused = server.consort(words);
        assert_eq!(refused.code, Some(1), "{words:?}: {refused:?}");
        assert_says("control", &refused.stderr, &["policy does not allow", "control the server"]);
    }
    server.run("jack_bufsize", &["512"]);
    assert_eq!(server.status().quantum, 256);
    assert!(server.program().is_running());
}

#[test]
fn the_permission_to_control_opens_neither_files_nor_devices() {
    let (server, _policy) = server("patch,record,capture,control exe=*/consort\n", &[]);
    server.consort(&["driver", "timer", "--playback", "1"]).expect_success();
    for driver in [&["file", "--output", "here.wav"][..], &["alsa", "--device", "null"]] {
        let refused = server.consort(&[&["driver"], driver].concat());
        assert_eq!(refused.code, Some(1), "{driver:?}: {refused:?}");
        assert_says(
            "a driver",
            &refused.stderr,
            &["policy does not allow", "switch to this driver"],
        );
    }
    assert!(!server.directory().join("here.wav").exists());
    assert!(
        server
            .consort(&["driver"])
            .stdout
            .starts_with("timer, 48000 Hz, 256 frames, 2 capture ports, 1 playback port")
    );
}

/// A mark in the captured sound makes the conductor start the transport through its own memory.
fn played_to_a_conductor(rules: &str) -> Sound {
    const FRAMES: usize = 60 * 256;
    let mut marks = vec![0.0; FRAMES];
    marks[20 * 256] = 1.0;
    let (_directory, path) = policy(rules);
    let options = ["--quantum", "256", "--fast", "--policy", &path.to_string_lossy()];
    let server = Server::playing(&Sound::of(48_000, &[marks]), &options);
    let _follower = server.probe(&["follow", "follower"]);
    server.run("jack_connect", &["follower:out", "system:playback_1"]).expect_success();
    let _conductor = server.probe(&["conduct", "conductor", "--from", "system:capture_1"]);
    server.played()
}

#[test]
fn transport_requests_in_memory_need_the_permission_to_control() {
    let heard = played_to_a_conductor("connect,capture,control exe=*/probe\n");
    assert!(heard.peak(0) > 0.0, "the transport rolls");
    let heard = played_to_a_conductor("connect,capture exe=*/probe\n");
    assert_eq!(heard.peak(0), 0.0, "the transport stands");
}
