//! The transport and freewheel, checked by the samples that clients make from them, and by what
//! remains when a client fails.
#![forbid(unsafe_code)]

mod failing;
mod freewheel;
mod rolling;

use harness::Server;

fn transport(server: &Server) -> serde_json::Value {
    server.consort_json(&["transport", "show"])
}
