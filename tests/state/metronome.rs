//! A server with programs from Debian, and the state that it saves.

use harness::{Program, Server, eventually};
use serde_json::Value;

/// The state of a server as `consort save` has it.
pub(crate) fn saved(server: &Server) -> Value {
    let text = server.consort(&["save", "-"]).expect_success().stdout;
    serde_json::from_str(&text).expect("JSON")
}

/// A metronome that connects itself to nothing.
pub(crate) fn metro(server: &Server) -> Program {
    let metro = server.spawn("jack_metro", &["-b", "120"]);
    server.await_port(METRO);
    // From here on its port can be connected.
    server.await_active("metro");
    metro
}

pub(crate) const METRO: &str = "metro:120_bpm";

/// Ends the metronome, and waits until its port is gone.
pub(crate) fn end(server: &Server, metro: Program) {
    metro.terminate();
    eventually("the metronome is gone", || {
        server.graph().port_named(METRO).is_none().then_some(())
    });
}

/// Gives the metronome a connection, an alias and properties, and the server another quantum and a
/// transport position.
pub(crate) fn populate(server: &Server) {
    server.run("jack_connect", &[METRO, "system:playback_2"]).expect_success();
    server.run("jack_alias", &[METRO, "click"]).expect_success();
    for (kind, name) in [("-p", METRO), ("-c", "metro"), ("-p", "system:playback_1")] {
        server
            .run("jack_property", &["-s", kind, name, "urn:label", "Ä label", "text/plain"])
            .expect_success();
    }
    server.run("jack_bufsize", &["512"]);
    server.consort(&["transport", "locate", "48000"]).expect_success();
    eventually("the transport stands there", || {
        (saved(server)["transport"]["frame"] == 48_000).then_some(())
    });
}

/// The state of a server after [`populate`].
pub(crate) fn populated() -> Value {
    let property = |owner: Value| serde_json::json!({"owner": owner, "key": "urn:label", "value": "Ä label", "type": "text/plain"});
    serde_json::json!({
        "consort_state": 1,
        "buffer_size": 512,
        "transport": {"rolling": false, "frame": 48_000},
        "connections": [{"source": METRO, "destination": "system:playback_2"}],
        "aliases": {METRO: ["click"]},
        "properties": [
            property(serde_json::json!({"port": "system:playback_1"})),
            property(serde_json::json!({"port": METRO})),
            property(serde_json::json!({"client": "metro"})),
        ],
    })
}

/// Waits until a server has this state; lists may be in any order.
pub(crate) fn await_state(server: &Server, expected: &Value) {
    let sorted = |mut state: Value| {
        for list in ["connections", "properties"] {
            if let Some(list) = state[list].as_array_mut() {
                list.sort_by_key(ToString::to_string);
            }
        }
        state
    };
    let expected = sorted(expected.clone());
    let end = std::time::Instant::now() + harness::PATIENCE;
    let mut found = sorted(saved(server));
    while found != expected {
        assert!(std::time::Instant::now() < end, "expected {expected:#}\nfound {found:#}");
        std::thread::sleep(std::time::Duration::from_millis(20));
        found = sorted(saved(server));
    }
}
