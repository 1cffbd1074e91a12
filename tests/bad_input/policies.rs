//! Restricted programs do not get what the policy denies them, whichever program requests it.

use std::path::{Path, PathBuf};

use harness::{Finished, Program, Server, Sound, binary, copy_program, eventually, not_run};
use proto::request::Request;
use tempfile::TempDir;

use crate::wire::{self, Wire, assert_says};

/// A server with these rules, under which all other programs may do everything.
fn server(rules: &str, options: &[&str]) -> (Server, TempDir) {
    server_with_no_more_than(&format!("{rules}everything\n"), options)
}

fn server_with_no_more_than(rules: &str, options: &[&str]) -> (Server, TempDir) {
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
    mapped(program, "memfd:consort-slab")
}

/// Signal pages that a process has mapped.
fn signal_pages(program: &Program) -> usize {
    mapped(program, "memfd:consort-signals")
}

fn mapped(program: &Program, name: &str) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.id())).expect("it runs");
    let segments = maps.lines().filter(|line| line.contains(name));
    let mut inodes: Vec<&str> =
        segments.filter_map(|line| line.split_whitespace().nth(4)).collect();
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
    copy_program(probe, &victim);
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
fn feeding_other_clients_needs_the_permission_to_play() {
    for (permissions, may_play) in [("connect,record,capture", false), ("connect,play", true)] {
        let (server, _policy) = server(&format!("{permissions} exe=*/victim\n"), &[]);
        let victim = server.directory().join("victim");
        copy_program(server.probe_command(&[]).get_program(), &victim);
        let mut command = server.command(&victim.to_string_lossy());
        command.args(["source", "restricted"]);
        let mut restricted = Program::start(command);
        eventually("it is ready", || restricted.stdout().contains("ready\n").then_some(()));
        let listener = server.probe(&["thru", "listener"]);
        // Another program connects them.
        let connected = server.consort(&["connect", "restricted:out", "listener:in"]);
        assert_eq!(connected.code, Some(i32::from(!may_play)), "{permissions}: {connected:?}");
        if !may_play {
            let words = ["policy does not allow", "'restricted:out'", "to play to other clients"];
            assert_says(permissions, &connected.stderr, &words);
            assert_eq!(signal_pages(&restricted), 1, "it can signal no other client");
        }
        // The driver's ports are there for programs that play.
        server.consort(&["connect", "restricted:out", "system:playback_1"]).expect_success();
        drop(listener);
    }
}

#[test]
fn a_stream_feeds_other_clients_with_the_permission_to_play() {
    for (permissions, may_play) in [("patch,record,capture", false), ("connect,play", true)] {
        let (server, _policy) = server(&format!("{permissions} exe=*/restricted\n"), &[]);
        let song = server.directory().join("song.wav");
        Sound::of(48_000, &[vec![0.5; 480_000]]).write(&song);
        let restricted = server.directory().join("restricted");
        copy_program(binary("consort"), &restricted);
        let mut command = server.command(&restricted.to_string_lossy());
        let player = Program::start({
            command.args(["play", &song.to_string_lossy()]);
            command
        });
        const PORT: &str = "consort play:output_FL";
        server.await_port(PORT);
        // The device needs no permission.
        server.await_connection(PORT, "system:playback_1");
        let listener = server.probe(&["thru", "listener"]);
        let connected = server.consort(&["connect", PORT, "listener:in"]);
        assert_eq!(connected.code, Some(i32::from(!may_play)), "{permissions}: {connected:?}");
        if !may_play {
            let words = ["policy does not allow", PORT, "to play to other clients"];
            assert_says(permissions, &connected.stderr, &words);
            assert_eq!(slabs(&listener), 1, "its own");
        }
        player.terminate();
    }
}

#[test]
fn a_recorder_hears_other_programs_with_the_permission_to_record() {
    for (permissions, may_record) in [("connect,play,capture", false), ("capture,record", true)] {
        let (server, _policy) = server(&format!("{permissions} exe=*/restricted\n"), &[]);
        let restricted = server.directory().join("restricted");
        copy_program(binary("consort"), &restricted);
        let mut command = server.command(&restricted.to_string_lossy());
        command.args(["record", "take.wav"]);
        let recorder = Program::start(command);
        const PORT: &str = "consort record:input_FL";
        server.await_port(PORT);
        // What is captured needs another permission, which it has.
        server.await_connection("system:capture_1", PORT);
        let _client = server.probe(&["thru", "client"]);
        let connected = server.consort(&["connect", "client:out", PORT]);
        assert_eq!(connected.code, Some(i32::from(!may_record)), "{permissions}: {connected:?}");
        if !may_record {
            let words = ["policy does not allow", PORT, "to hear other clients"];
            assert_says(permissions, &connected.stderr, &words);
        }
        recorder.terminate();
    }
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
    // Each of them may connect its own.
    let rules = "connect,play,record exe=*/jack_connect\n\
                 connect,play,record exe=*/jack_disconnect\n\
                 connect,play,record exe=*/probe\n\
                 nothing exe=*/bad_input-*\n";
    let (server, _policy) = server(rules, &[]);
    let _source = server.probe(&["source", "source"]);
    let _listener = server.probe(&["thru", "listener", "--from", "source:out"]);
    let are_connected = || server.lsp(&["-c"]).contains("listener:out\n   system:playback_1");
    let refused = server.run("jack_connect", &["listener:out", "system:playback_1"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(!are_connected(), "nothing was connected");
    let refused = server.consort(&["connect", "listener:out", "system:playback_1"]);
    assert_eq!(refused.code, Some(0), "another program may: {refused:?}");
    let refused = server.run("jack_disconnect", &["listener:out", "system:playback_1"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(are_connected(), "nothing was disconnected");
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
fn a_program_that_no_rule_matches_may_do_nothing() {
    let (server, _policy) = server_with_no_more_than("everything exe=*/consort\n", &[]);
    let _source = server.probe(&["source", "source"]);
    let _thru = server.probe(&["thru", "thru"]);
    let refused = server.run("jack_connect", &["source:out", "thru:in"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let refused = server.consort(&["connect", "source:out", "thru:in"]);
    let words = ["policy does not allow", "'thru:in'", "to hear other clients"];
    assert_says("a probe", &refused.stderr, &words);
    server.consort(&["connect", "source:out", "system:playback_1"]).expect_success();
}

/// Runs `consort connect` of these ports in a shell that has made `$0` a copy of it, by `script`.
fn connect_as(server: &Server, shell: &[&str], script: &str, path: &Path) -> Finished {
    let mut command = server.command(shell[0]);
    let script =
        format!("rm -f \"$0\"; cp '{}' \"$0\" && {script}", binary("consort").to_string_lossy());
    command.args(&shell[1..]).args(["-c", &script]).arg(path);
    command.args(["connect", "system:capture_1", "system:playback_1"]);
    Program::start(command).finish()
}

#[test]
fn a_rule_by_file_holds_when_the_file_has_been_deleted() {
    let (server, _policy) = server("nothing exe=*/denied\n", &[]);
    let path = server.directory().join("denied");
    for script in ["exec \"$0\" \"$@\"", "exec 3<\"$0\"; rm \"$0\"; exec /proc/self/fd/3 \"$@\""] {
        let refused = connect_as(&server, &["sh"], script, &path);
        assert_eq!(refused.code, Some(1), "{script}: {refused:?}");
        assert_says(script, &refused.stderr, &["policy does not allow"]);
    }
    let allowed = connect_as(&server, &["sh"], "exec \"$0\" \"$@\"", &path.with_file_name("other"));
    allowed.expect_success();
}

#[test]
fn a_program_cannot_take_a_path_by_mounts_of_its_own() {
    const MOUNTS: &[&str] = &["unshare", "--mount", "sh"];
    let (server, _policy) = server_with_no_more_than("everything exe=*/trusted\n", &[]);
    let path = server.directory().join("trusted");
    let script = "mv \"$0\" evil; touch \"$0\"; mount --bind evil \"$0\" && exec \"$0\" \"$@\"";
    let refused = connect_as(&server, MOUNTS, script, &path);
    if refused.stderr.contains("unshare:") || refused.stderr.contains("mount:") {
        return not_run("no mounts here");
    }
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_says("a mounted file", &refused.stderr, &["policy does not allow"]);
    connect_as(&server, &["sh"], "exec \"$0\" \"$@\"", &path).expect_success();
}

#[test]
fn stopping_the_server_needs_the_permission_to_control() {
    let rules = "everything,x exe=*/consort\n";
    let (_directory, path) = policy(rules);
    let mut command = std::process::Command::new(binary("consort"));
    command.args(["run", "-n", "misruled", "--policy"]).arg(&path);
    let refused = Program::start(command).finish();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_says("a rule", &refused.stderr, &["line 1 is not a rule", "everything,x"]);

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
    let refused = server.consort(&["device", "add", "plughw:0", "--streams"]);
    assert_says("a card", &refused.stderr, &["policy does not allow", "open a card"]);
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
    let (_directory, path) = policy(&format!("{rules}everything\n"));
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

#[test]
fn the_volume_of_others_needs_a_permission() {
    let (server, _policy) = server("connect,play exe=*/restricted\n", &[]);
    let song = server.directory().join("song.wav");
    Sound::of(48_000, &[vec![0.5; 480_000]]).write(&song);
    let song = song.to_string_lossy().into_owned();
    let player = server.spawn_consort(&["play", &song]);
    eventually("it plays", || {
        (!server.observer().streams().expect("an answer").is_empty()).then_some(())
    });
    let restricted = server.directory().join("restricted");
    copy_program(binary("consort"), &restricted);
    let run = |arguments: &[&str]| {
        let mut command = server.command(&restricted.to_string_lossy());
        command.args(arguments);
        Program::start(command).finish()
    };
    for (arguments, words) in [
        (["volume", "1", "0.1"].as_slice(), "change the volume of another program's stream"),
        (&["mute", "consort play"], "change the volume of another program's stream"),
        (&["mute", "device"], "change the volume of a device"),
    ] {
        let refused = run(arguments);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert_says("volume", &refused.stderr, &["policy does not allow", words]);
    }
    let streams = server.observer().streams().expect("an answer");
    assert_eq!(streams[0].volume, Default::default(), "nothing has changed");
    server.consort(&["volume", "1", "0.1"]).expect_success();
    server.consort(&["mute", "device"]).expect_success();
    player.terminate();
}

#[test]
fn adding_a_device_needs_the_permission_to_control() {
    let (server, _policy) = server("connect,patch,play,record exe=*/restricted\n", &[]);
    let restricted = server.directory().join("restricted");
    copy_program(binary("consort"), &restricted);
    let run = |arguments: &[&str]| {
        let mut command = server.command(&restricted.to_string_lossy());
        command.args(arguments);
        Program::start(command).finish()
    };
    server.consort(&["device", "add", "null"]).expect_success();
    for (arguments, words) in [
        (["device", "add", "null", "--name", "own"].as_slice(), "add a device"),
        (&["device", "remove", "null"], "remove a device"),
        (&["mute", "device:null"], "change the volume of a device"),
    ] {
        let refused = run(arguments);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert_says("device", &refused.stderr, &["policy does not allow", words]);
    }
    let devices = server.observer().further_devices().expect("an answer");
    assert!(devices.len() == 1 && !devices[0].volume.muted, "nothing has changed: {devices:?}");
    server.consort(&["device", "remove", "null"]).expect_success();
}

#[test]
fn recording_as_a_stream_needs_the_permissions_of_a_clients_ports() {
    let (server, _policy) = server("connect,play,capture exe=*/restricted\n", &[]);
    let restricted = server.directory().join("restricted");
    copy_program(binary("consort"), &restricted);
    let record = |options: &[&str]| {
        let mut command = server.command(&restricted.to_string_lossy());
        command.args(["record", "--duration", "1", "take.wav"]).args(options);
        Program::start(command).finish()
    };
    let refused = record(&["--monitor"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let words = ["policy does not allow", "record what other programs play"];
    assert_says("monitor", &refused.stderr, &words);
    record(&[]).expect_success();
    let own = server.consort(&["record", "--duration", "1", "--monitor", "all.wav"]);
    own.expect_success();
}
