//! State that only the server has: the position of the transport, and properties.

use harness::{Server, eventually};
use serde_json::Value;

use crate::scenario::Witness;

fn transport(server: &Server) -> (String, u64) {
    let shown = server.consort(&["transport", "show", "--json"]).expect_success().stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    (
        shown["state"].as_str().expect("a state").to_owned(),
        shown["frame"].as_u64().expect("a frame"),
    )
}

#[test]
fn the_transport_keeps_its_position_and_state() {
    let mut server = Server::timer(256);
    let mut witness = Witness::start(&server, &["witness", "system:capture_1"]);
    let stands = ("stopped".to_owned(), 48_000);
    server.consort(&["transport", "locate", "48000"]).expect_success();
    eventually("it stands there", || (transport(&server) == stands).then_some(()));
    for _ in 0..2 {
        server.kill();
        server.start_again();
        server.await_connection("system:capture_1", "witness:in");
        eventually("it stands there again", || (transport(&server) == stands).then_some(()));
    }
    server.consort(&["transport", "start"]).expect_success();
    eventually("it rolls", || (transport(&server).1 > 96_000).then_some(()));
    server.kill();
    server.start_again();
    server.await_connection("system:capture_1", "witness:in");
    eventually("it rolls on", || {
        let (state, frame) = transport(&server);
        (state == "rolling" && frame > 96_000).then_some(())
    });
    assert_eq!(witness.lines("shutdown"), [""; 0]);
}

#[test]
fn properties_survive_a_server_that_is_killed() {
    let mut server = Server::timer(256);
    let mut witness = Witness::start(&server, &["witness", "system:capture_1"]);
    for (kind, name) in [("-p", "witness:in"), ("-c", "witness"), ("-p", "system:capture_1")] {
        server.run("jack_property", &["-s", kind, name, "urn:label", "label"]).expect_success();
    }
    let before = server.run("jack_property", &["-l"]).expect_success().stdout;
    assert_eq!(before.matches("label").count(), 6, "{before}");
    let kept = server.directory().join("consort/under-test/properties.json");
    eventually("they are written", || {
        let text = std::fs::read_to_string(&kept).ok()?;
        (text.matches("urn:label").count() == 3).then_some(())
    });
    server.kill();
    server.start_again();
    server.await_connection("system:capture_1", "witness:in");
    eventually("they are there again", || {
        (server.run("jack_property", &["-l"]).stdout == before).then_some(())
    });
    assert_eq!(witness.lines("shutdown"), [""; 0]);
    server.program().signal(rustix::process::Signal::TERM);
    eventually("the server has ended", || (!server.program().is_running()).then_some(()));
    assert!(!kept.exists());
}
