//! Clients, ports and connections, for the drawing.

use client::port_flags::{INPUT, OUTPUT, PHYSICAL};
use client::{ClientInfo, PortInfo, PortType, RegistryView};
use serde_json::{Value, json};

/// The graph as it is now.
pub(crate) fn graph(registry: RegistryView<'_>) -> Value {
    let mut clients: Vec<(ClientInfo, Vec<Value>)> =
        registry.clients().map(|client| (client, Vec::new())).collect();
    for port in registry.ports() {
        if let Some((_, ports)) = clients.iter_mut().find(|(client, _)| client.id == port.owner) {
            ports.push(port_value(&registry, &port));
        }
    }
    clients
        .into_iter()
        .map(|(client, ports)| {
            json!({
                "id": client.id, "name": client.name, "active": client.active, "bypassed": client.bypassed,
                "ports": ports,
            })
        })
        .collect()
}

fn port_value(registry: &RegistryView<'_>, port: &PortInfo) -> Value {
    // Each connection is told by its source.
    let is_output = port.flags & OUTPUT != 0;
    let readers = if is_output { registry.connections(port.id) } else { Vec::new() };
    json!({
        "id": port.id, "name": port.name, "is_input": port.flags & INPUT != 0,
        "is_physical": port.flags & PHYSICAL != 0, "is_midi": port.port_type == PortType::Midi,
        "readers": readers,
    })
}
