//! Newcomers, temporary servers, and servers that programs start.

use harness::{Program, Server, binary, eventually};

use crate::scenario::Witness;

#[test]
fn a_returning_client_keeps_its_name_before_a_new_one() {
    let mut server = Server::timer(256);
    let mut first = Witness::start(&server, &["witness", "system:capture_1"]);
    let before = first.settled_state();
    server.kill();
    server.start_again();
    // Not connected until the server admits new clients.
    let mut second = Witness::start(&server, &["witness"]);
    assert!(second.state().contains("name witness-01 "));
    eventually("the first is what it was", || (first.state() == before).then_some(()));
    assert_eq!((first.seen().backwards, second.seen().backwards), (0, 0));
}

#[test]
fn clients_return_to_a_server_that_another_program_starts() {
    let mut server = Server::timer(256);
    let mut witness = Witness::start_with(&server, &["witness", "system:capture_1"], &[]);
    let before = witness.settled_state();
    server.kill();
    let refused = server.run("jack_lsp", &[]);
    assert_ne!(refused.code, Some(0), "JACK_NO_START_SERVER: {refused:?}");
    let jackd = server.directory().join("jackd");
    std::os::unix::fs::symlink(binary("consort"), &jackd).expect("a link");
    let rc = format!("{} -d dummy -r 48000 -p 256\n", jackd.display());
    std::fs::write(server.directory().join(".jackdrc"), rc).expect("a file");
    let mut command = server.command("jack_simple_client");
    command.env_remove("JACK_NO_START_SERVER");
    let starter = Program::start(command);
    eventually("a server is there", || (server.consort(&["status"]).code == Some(0)).then_some(()));
    server.await_connection("system:capture_1", "witness:in");
    eventually("the first is what it was", || (witness.state() == before).then_some(()));
    drop(starter);
    // The server is temporary, and the witness is its last client.
    assert_eq!(witness.seen().backwards, 0);
    eventually("it ends with its last client", || {
        let gone = server.consort(&["status"]);
        (gone.code == Some(3)).then_some(())
    });
}

#[test]
fn connections_made_by_a_patchbay_return_with_their_clients() {
    let mut server = Server::start(&["--quantum", "256", "--self-connect", "fail-all"]);
    let _source = server.probe(&["source", "source"]);
    let _reader = server.probe(&["check", "reader"]);
    server.await_port("reader:in");
    server.consort(&["connect", "source:out", "reader:in"]).expect_success();
    server.kill();
    server.start_again();
    server.await_connection("reader:in", "source:out");
}

#[test]
fn a_temporary_server_stays_as_long_as_the_clients_that_returned() {
    let mut server = Server::start(&["--quantum", "256", "--temporary"]);
    let mut witness = Witness::start(&server, &["witness", "system:capture_1"]);
    let before = witness.settled_state();
    server.kill();
    server.start_again();
    eventually("it is what it was", || (witness.state() == before).then_some(()));
    server.await_connection("system:capture_1", "witness:in");
    assert_eq!(witness.seen().backwards, 0);
    eventually("it ends with its last client", || (!server.program().is_running()).then_some(()));
}
