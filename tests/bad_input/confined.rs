//! Programs in sandboxes have a server of their user's do nothing that their sandbox forbids.

use std::process::Command;

use harness::{Counts, Finished, Program, Server, binary, eventually, not_run};

use crate::wire::assert_says;

/// As a sandbox for applications has them.
const NAMESPACES: &[&str] =
    &["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"];
const SECCOMP: &str = "import ctypes, os, struct, sys\n\
    allow = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))\n\
    filters = struct.pack('HP', 1, ctypes.addressof(allow))\n\
    prctl = ctypes.CDLL(None, use_errno=True).prctl\n\
    assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, filters) == 0\n\
    os.execvp(sys.argv[1], sys.argv[1:])\n";

/// A command that starts another one confined, and why the server says that it is.
const SANDBOXES: [(&[&str], &str); 5] = [
    (NAMESPACES, "it has other mounts"),
    (&["unshare", "--mount"], "it has other mounts"),
    (&["unshare", "--user", "--map-root-user"], "it is in another user namespace"),
    (&["unshare", "--pid", "--fork", "--kill-child"], "it is in another pid namespace"),
    (&["/usr/bin/python3", "-c", SECCOMP], "its system calls are filtered"),
];

fn is_possible(sandbox: &[&str]) -> bool {
    let mut command = Command::new(sandbox[0]);
    command.args(&sandbox[1..]).arg("true");
    let is_possible = command.output().is_ok_and(|output| output.status.success());
    if !is_possible {
        not_run(&format!("'{}' is not permitted here", sandbox[..2].join(" ")));
    }
    is_possible
}

fn confined(server: &Server, sandbox: &[&str], program: &str, arguments: &[&str]) -> Finished {
    let mut command = server.command(sandbox[0]);
    command.args(&sandbox[1..]).arg(program).args(arguments);
    Program::start(command).finish()
}

fn consort(server: &Server, sandbox: &[&str], arguments: &[&str]) -> Finished {
    confined(server, sandbox, &binary("consort").to_string_lossy(), arguments)
}

#[test]
fn a_confined_program_has_no_files_devices_and_plug_ins_opened() {
    let server = Server::timer(256);
    for (sandbox, why) in SANDBOXES.into_iter().filter(|(sandbox, _)| is_possible(sandbox)) {
        for driver in [&["file", "--output", "here.wav"][..], &["alsa", "--device", "null"]] {
            let refused = consort(&server, sandbox, &[&["driver"], driver].concat());
            assert_eq!(refused.code, Some(1), "{driver:?}: {refused:?}");
            let words = ["a confined program may not switch to this driver", why, "--policy"];
            assert_says("a driver", &refused.stderr, &words);
        }
        let refused = consort(&server, sandbox, &["device", "add", "plughw:0", "--streams"]);
        assert_says("a card", &refused.stderr, &["may not have the server open a card", why]);
        let refused = confined(&server, sandbox, "jack_load", &["gain", "inprocess"]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert_says("a plug-in", &refused.stderr, &["may not have the server run plug-ins", why]);
        let path = server.directory().to_string_lossy().into_owned();
        let refused = confined(&server, sandbox, "jack_session_notify", &["save", &path]);
        assert_says("a session", &refused.stderr, &["may not name a directory", why]);
        // All other permissions are as before.
        consort(&server, sandbox, &["driver", "timer", "--playback", "1"]).expect_success();
        consort(&server, sandbox, &["connect", "system:capture_1", "system:playback_1"])
            .expect_success();
        consort(&server, sandbox, &["disconnect", "system:capture_1", "system:playback_1"])
            .expect_success();
    }
    assert!(!server.directory().join("here.wav").exists());
    assert!(!server.lsp(&[]).contains("gain:"));
    // One that is not confined.
    let output = ["driver", "file", "--output", "here.wav"];
    server.consort(&output).expect_success();
    assert!(server.directory().join("here.wav").exists());
}

#[test]
fn a_confined_program_plays_and_hears() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    for (sandbox, _) in SANDBOXES.into_iter().filter(|(sandbox, _)| is_possible(sandbox)) {
        let probe = server.probe_command(&[]).get_program().to_owned();
        let probe = probe.to_string_lossy();
        let mut command = server.command(sandbox[0]);
        command.args(&sandbox[1..]).args([&*probe, "thru", "boxed", "--from", "source:out"]);
        let mut boxed = Program::start(command);
        eventually("it is ready", || boxed.stdout().contains("ready\n").then_some(()));
        let listener = server.probe(&["check", "listener", "--from", "boxed:out"]);
        server.await_cycles(100);
        let heard = Counts::of(listener);
        assert!(heard.good > 0 && heard.wrong == 0, "{heard:?}");
        drop(boxed);
        eventually("it has left", || server.client("boxed").is_none().then_some(()));
    }
}

#[test]
fn a_rule_may_give_a_confined_program_everything() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let directory = tempfile::TempDir::new().expect("room");
    let policy = directory.path().join("policy");
    std::fs::write(&policy, "everything\n").expect("room");
    let server = Server::start(&["--quantum", "256", "--policy", &policy.to_string_lossy()]);
    consort(&server, NAMESPACES, &["driver", "file", "--output", "here.wav"]).expect_success();
    assert!(server.directory().join("here.wav").exists());
}
