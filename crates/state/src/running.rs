//! The state of a running server: taken, and given back. For commands, and for whoever else shows a server to people;
//! with the feature `running`, so that the server itself does without a client of its own.

use std::collections::HashMap;

use crate::{Connection, Owner, Place, State};
use client::{Observer, PortInfo, Property, PropertyValue, RegistryView, Request, port_uuid};
use proto::property::PropertyRequest;
use proto::request::RequestError;

/// What restoring does with what the state does not speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// It stays.
    Stay,
    /// Connections that the state does not have go.
    Disconnect,
}

/// Takes the state of a server, as it is now.
///
/// # Errors
/// Those of asking the server.
pub fn save(server: &Observer) -> Result<State, client::Error> {
    let registry = server.registry();
    let ports: Vec<PortInfo> = registry.ports().collect();
    let transport = server.transport();
    let mut state = State {
        quantum: server.engine().info().map(|info| info.quantum),
        transport: Some(Place::of(transport.state.passes(), &transport.position)),
        connections: connections(registry, &ports),
        ..State::default()
    };
    for port in ports.iter().filter(|port| !port.aliases.is_empty()) {
        state.aliases.insert(port.name.clone(), port.aliases.clone());
    }
    let owners = owners(registry, &ports);
    for Property { subject, key, value } in server.properties(None)? {
        // What is neither a client's nor a port's has no name to be found by.
        if let Some(owner) = owners.iter().find(|(_, uuid)| **uuid == subject).map(|(owner, _)| owner.clone())
        {
            let PropertyValue { text, type_name } = value;
            state.properties.push(crate::Property { owner, key, value: text, type_name });
        }
    }
    Ok(state)
}

fn connections(registry: RegistryView<'_>, ports: &[PortInfo]) -> Vec<Connection> {
    let names: HashMap<u32, &str> = ports.iter().map(|port| (port.id, port.name.as_str())).collect();
    let mut found = Vec::new();
    for port in ports.iter().filter(|port| port.is_output()) {
        let peers = registry.connections(port.id).into_iter();
        found.extend(peers.filter_map(|peer| {
            let destination = (*names.get(&peer)?).to_owned();
            Some(Connection { source: port.name.clone(), destination })
        }));
    }
    found
}

/// Uuids of what can have properties, by name.
fn owners(registry: RegistryView<'_>, ports: &[PortInfo]) -> HashMap<Owner, u64> {
    let clients = registry.clients().map(|client| (Owner::Client(client.name), client.uuid));
    let ports = ports.iter().map(|port| (Owner::Port(port.name.clone()), port_uuid(port.id)));
    clients.chain(ports).collect()
}

/// Gives a server a state back, as far as it can be: what could not be restored, and why, a line for each.
///
/// # Errors
/// Those of asking the server at all.
pub fn restore(server: &Observer, state: &State, others: Others) -> Result<Vec<String>, client::Error> {
    let mut failures = Failures::default();
    if let Some(frames) = state.quantum.filter(|frames| Some(*frames) != quantum(server)) {
        failures.note(format_args!("the quantum of {frames} frames"), server.set_quantum(frames))?;
    }
    let registry = server.registry();
    let ports: Vec<PortInfo> = registry.ports().collect();
    restore_aliases(server, state, &ports, &mut failures)?;
    restore_properties(server, state, &owners(registry, &ports), &mut failures)?;
    let present = connections(registry, &ports);
    if others == Others::Disconnect {
        for Connection { source, destination } in &present {
            let wanted =
                state.connections.iter().any(|of| (&of.source, &of.destination) == (source, destination));
            if !wanted {
                failures.note(
                    format_args!("the end of the connection '{source}' to '{destination}'"),
                    server.disconnect(source, destination),
                )?;
            }
        }
    }
    for connection in state.connections.iter().filter(|connection| !present.contains(connection)) {
        let Connection { source, destination } = connection;
        let made = match server.connect(source, destination) {
            Err(client::Error::Refused(RequestError::AlreadyConnected { .. })) => Ok(()),
            made => made,
        };
        failures.note(format_args!("the connection '{source}' to '{destination}'"), made)?;
    }
    if let Some(place) = state.transport {
        let request = Request::Transport {
            roll: Some(place.rolling),
            position: Some(place.position().to_words()),
            sync_timeout_us: None,
        };
        failures.note(format_args!("the transport"), server.order(request))?;
    }
    Ok(failures.0)
}

fn quantum(server: &Observer) -> Option<u32> {
    server.engine().info().map(|info| info.quantum)
}

fn restore_aliases(
    server: &Observer,
    state: &State,
    ports: &[PortInfo],
    failures: &mut Failures,
) -> Result<(), client::Error> {
    for (name, aliases) in &state.aliases {
        let port = ports.iter().find(|port| port.name == *name);
        for alias in aliases.iter().filter(|alias| port.is_none_or(|port| !port.aliases.contains(alias))) {
            let set = match port {
                Some(port) => server.order(Request::SetAlias { port: port.id, alias: alias.clone() }),
                None => Err(absent(&Owner::Port(name.clone()))),
            };
            failures.note(format_args!("the alias '{alias}' of port '{name}'"), set)?;
        }
    }
    Ok(())
}

fn restore_properties(
    server: &Observer,
    state: &State,
    owners: &HashMap<Owner, u64>,
    failures: &mut Failures,
) -> Result<(), client::Error> {
    let present = server.properties(None)?;
    for crate::Property { owner, key, value, type_name } in &state.properties {
        let value = PropertyValue { text: value.clone(), type_name: type_name.clone() };
        let set = match owners.get(owner) {
            Some(subject) => {
                let property = Property { subject: *subject, key: key.clone(), value };
                if present.contains(&property) {
                    continue;
                }
                server.order(Request::Property(PropertyRequest::Set(property)))
            }
            None => Err(absent(owner)),
        };
        failures.note(format_args!("the property '{key}' of {owner}"), set)?;
    }
    Ok(())
}

/// As the server would say it.
fn absent(owner: &Owner) -> client::Error {
    client::Error::Refused(RequestError::Property(format!("there is no {owner}")))
}

/// What could not be restored, and why.
#[derive(Debug, Default)]
struct Failures(Vec<String>);

impl Failures {
    /// Goes on after a refusal; a server that is gone refuses nothing any more.
    fn note(
        &mut self,
        what: std::fmt::Arguments<'_>,
        result: Result<(), client::Error>,
    ) -> Result<(), client::Error> {
        match result {
            Err(client::Error::Refused(reason)) => self.0.push(format!("{what}: {reason}")),
            result => return result,
        }
        Ok(())
    }
}
