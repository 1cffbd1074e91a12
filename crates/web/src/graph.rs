//! The graph for the page.

use client::PortType;
use client::port_flags::{INPUT, PHYSICAL};
use observe::{Graph, Port};
use serde_json::{Value, json};

/// Returns the clients with their ports, as JSON.
pub(crate) fn value(graph: &Graph) -> Value {
    graph
        .clients()
        .map(|client| {
            let ports: Vec<Value> = graph.ports_of(client.id).map(port_value).collect();
            json!({
                "id": client.id, "name": client.name, "active": client.active,
                "bypassed": client.bypassed, "ports": ports,
            })
        })
        .collect()
}

fn port_value(port: &Port) -> Value {
    let info = &port.info;
    // Each connection is listed once, at its source.
    let readers = if info.is_output() { port.peers.as_slice() } else { &[] };
    json!({
        "id": info.id, "name": info.name, "is_input": info.flags & INPUT != 0,
        "is_physical": info.flags & PHYSICAL != 0, "is_midi": info.port_type == PortType::Midi,
        "readers": readers,
    })
}
