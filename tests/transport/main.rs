//! The transport and freewheel, by the samples that clients make of them and by what is left when one of them fails.
#![forbid(unsafe_code)]

mod failing;
mod freewheel;
mod rolling;

use harness::Server;

/// What `consort` prints as JSON.
fn json(server: &Server, arguments: &[&str]) -> serde_json::Value {
    let printed = server.consort(&[arguments, &["--json"]].concat()).expect_success().stdout;
    serde_json::from_str(&printed).expect("JSON")
}

fn transport(server: &Server) -> serde_json::Value {
    json(server, &["transport", "show"])
}
