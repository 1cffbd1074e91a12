//! Programs that write into their input buffers, which JACK forbids and some do.

use harness::{Counts, Server, eventually};

#[test]
fn a_program_that_writes_into_copied_inputs_changes_what_nobody_else_hears() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let writer = ["thru", "writer", "--from", "source:out", "--fault", "write-input"];
    let _writer = server.probe_with(&writer, |command| {
        command.env("CONSORT_COPY_INPUTS", "1");
    });
    let beside = server.probe(&["check", "beside", "--from", "source:out"]);
    let fed = server.probe(&["check", "fed", "--from", "writer:out"]);
    eventually("both hear it", || {
        let status = server.consort(&["status", "--json"]).expect_success().stdout;
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        (status["cycles"].as_u64()? > 600).then_some(())
    });
    for counts in [Counts::of(beside), Counts::of(fed)] {
        assert_eq!(counts.wrong, 0, "{counts:?}");
        assert!(counts.good > 100, "{counts:?}");
    }
}

#[test]
fn a_program_that_writes_into_inputs_that_are_not_copied_ends_and_nobody_else_hears_of_it() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let beside = server.probe(&["check", "beside", "--from", "source:out"]);
    let mut command =
        server.probe_command(&["thru", "writer", "--from", "source:out", "--fault", "write-input"]);
    command.env_remove("CONSORT_COPY_INPUTS");
    let ended = harness::Program::start(command).finish();
    assert_eq!(ended.signal, Some(11), "{ended:?}");
    assert_eq!(Counts::of(beside).wrong, 0);
}
