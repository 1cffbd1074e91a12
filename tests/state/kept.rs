//! `consort run --state`: programs that return have their connections, aliases and properties
//! again, on any server.

use std::path::Path;

use harness::{Program, Server, binary, command_in, eventually};
use rustix::process::Signal;

use crate::metronome::{METRO, await_state, end, metro, populate, populated, saved};

/// A server that keeps its state in a file of its directory.
pub(crate) fn keeping() -> Server {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let path = directory.path().join("kept.json").to_string_lossy().into_owned();
    Server::start_in(directory, &["--state", &path])
}

/// The server ends in order.
pub(crate) fn end_server(server: &mut Server) {
    server.program().signal(Signal::TERM);
    eventually("the server has ended", || (!server.program().is_running()).then_some(()));
}

#[test]
fn a_program_that_returns_under_its_name_has_its_state_again() {
    let server = keeping();
    let first = metro(&server);
    populate(&server);
    await_state(&server, &populated());
    end(&server, first);
    let _second = metro(&server);
    await_state(&server, &populated());
}

#[test]
fn a_connection_that_a_user_removed_does_not_come_back() {
    let server = keeping();
    let first = metro(&server);
    for port in ["system:playback_1", "system:playback_2"] {
        server.run("jack_connect", &[METRO, port]).expect_success();
    }
    server.run("jack_disconnect", &[METRO, "system:playback_1"]).expect_success();
    end(&server, first);
    let _second = metro(&server);
    server.await_connection(METRO, "system:playback_2");
    assert_eq!(server.lsp(&["-c", METRO]), format!("{METRO}\n   system:playback_2\n"));
}

#[test]
fn the_next_server_starts_with_the_state_of_the_last() {
    let mut server = keeping();
    let first = metro(&server);
    populate(&server);
    await_state(&server, &populated());
    end(&server, first);
    for _ in 0..2 {
        end_server(&mut server);
        server.start_again();
        // State that only the server had is there at once.
        eventually("the transport stands there", || {
            (saved(&server)["transport"] == populated()["transport"]).then_some(())
        });
        assert_eq!(saved(&server)["buffer_size"], 512);
    }
    let _second = metro(&server);
    await_state(&server, &populated());
}

#[test]
fn the_state_file_is_what_consort_restore_reads() {
    let mut server = keeping();
    let _first = metro(&server);
    populate(&server);
    await_state(&server, &populated());
    end_server(&mut server);
    let kept = server.directory().join("kept.json").to_string_lossy().into_owned();
    let other = Server::timer(256);
    let _metro = metro(&other);
    other.consort(&["restore", &kept]).expect_success();
    await_state(&other, &populated());
}

#[test]
fn a_killed_server_has_written_its_state() {
    let mut server = keeping();
    let first = metro(&server);
    populate(&server);
    let kept = server.directory().join("kept.json");
    let expected = populated();
    eventually("the state is written", || {
        let text = std::fs::read_to_string(&kept).ok()?;
        let written: serde_json::Value =
            serde_json::from_str(&text).expect("a whole state at any moment");
        let same = |part: &str| written[part] == expected[part];
        let properties = written["properties"].as_array().map(Vec::len);
        (same("transport") && same("connections") && same("aliases") && properties == Some(3))
            .then_some(())
    });
    server.kill();
    // It would return by itself, with its own state.
    drop(first);
    server.start_again();
    let _second = metro(&server);
    await_state(&server, &expected);
}

/// The error of a server that does not start.
fn refused(directory: &Path, path: &Path) -> String {
    let mut command = command_in(directory, &binary("consort"));
    command.args(["run", "-n", "other", "--state"]).arg(path);
    let ended = Program::start(command).finish();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    ended.stderr
}

#[test]
fn a_server_whose_state_file_is_nonsense_does_not_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("kept.json");
    std::fs::write(&path, "{\"consort_state\": 1, \"conections\": []}").expect("a file");
    let said = refused(directory.path(), &path);
    assert!(said.contains("conections"), "{said}");
    assert_eq!(
        std::fs::read_to_string(&path).expect("a file"),
        "{\"consort_state\": 1, \"conections\": []}"
    );
    let said = refused(directory.path(), &directory.path().join("none/kept.json"));
    assert!(said.contains("cannot write") && said.contains("none/kept.json"), "{said}");
}
