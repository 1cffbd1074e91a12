//! The transport and freewheel, by the samples that clients make of them and by what is left when
//! one of them fails.
#![forbid(unsafe_code)]

mod failing;
mod freewheel;
mod rolling;

use harness::Server;

fn transport(server: &Server) -> serde_json::Value {
    server.consort_json(&["transport", "show"])
}
