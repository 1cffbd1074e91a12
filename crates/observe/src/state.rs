//! Saves the state of a running server, and restores it.

use std::collections::HashMap;

use client::stream::{ChannelGains, DeviceVolume, StreamStatus, Volume};
use client::{Error, Observer, Property, PropertyValue, Request, Requester, port_uuid};
use proto::property::PropertyRequest;
use proto::request::RequestError;
use state::{Connection, Owner, State, StreamVolume, TransportPosition};

use crate::{Graph, StreamsView};

/// The server's name of the device that drives.
const DRIVER_NAME: &str = "system";

/// What [`restore`] does with connections that the state does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlisted {
    /// They stay.
    Keep,
    /// They are removed.
    Disconnect,
}

/// Reads the state of a server.
///
/// # Errors
/// A request to the server fails.
pub fn save(server: &Observer) -> Result<State, Error> {
    let graph = Graph::read(server.registry());
    let transport = server.transport();
    let mut state = State {
        quantum: quantum(server),
        transport: Some(TransportPosition::of(transport.state.passes(), &transport.position)),
        connections: connections(&graph),
        ..State::default()
    };
    for port in graph.ports().map(|port| &port.info).filter(|port| !port.aliases.is_empty()) {
        state.aliases.insert(port.name.clone(), port.aliases.clone());
    }
    let owners: HashMap<u64, Owner> =
        owners(&graph).map(|(owner, subject)| (subject, owner)).collect();
    for Property { subject, key, value } in server.properties(None)? {
        // A subject that is neither a client nor a port has no name to be found by.
        if let Some(owner) = owners.get(&subject).cloned() {
            let PropertyValue { text, type_name } = value;
            state.properties.push(state::Property { owner, key, value: text, type_name });
        }
    }
    save_volumes(&StreamsView::read(server)?, &mut state);
    Ok(state)
}

/// Adds the volumes that are not those with which devices and streams begin.
fn save_volumes(view: &StreamsView, state: &mut State) {
    let further = view.further.iter().map(|device| (device.name.as_str(), device.volume));
    let devices = std::iter::once((DRIVER_NAME, view.driver.volume)).chain(further);
    let changed = devices.filter(|(_, volume)| *volume != DeviceVolume::default());
    state.device_volumes = changed
        .map(|(name, volume)| state::DeviceVolume {
            device: name.into(),
            volumes: volume.gains.shortest().to_vec(),
            muted: volume.muted,
        })
        .collect();
    let streams = view.streams.iter().filter(|stream| stream.volume != Volume::default());
    state.stream_volumes = streams
        .map(|stream| StreamVolume {
            program: stream.program.clone(),
            stream: stream.name.clone(),
            volume: stream.volume.gain,
            muted: stream.volume.muted,
        })
        .collect();
}

fn connections(graph: &Graph) -> Vec<Connection> {
    let named = |(source, destination): (&crate::Port, &crate::Port)| Connection {
        source: source.info.name.clone(),
        destination: destination.info.name.clone(),
    };
    graph.connections().map(named).collect()
}

/// Everything that can have properties, by name, with the uuid that is the properties' subject.
fn owners(graph: &Graph) -> impl Iterator<Item = (Owner, u64)> {
    let clients = graph.clients().map(|client| (Owner::Client(client.name.clone()), client.uuid));
    let ports = graph.ports().map(|port| &port.info);
    clients.chain(ports.map(|port| (Owner::Port(port.name.clone()), port_uuid(port.id))))
}

/// Restores a state as far as the server allows. Returns a line for each part that could not be
/// restored, with the reason.
///
/// # Errors
/// A request to the server fails, other than by a refusal.
pub fn restore(server: &Observer, state: &State, unlisted: Unlisted) -> Result<Vec<String>, Error> {
    let mut failures = Failures::default();
    if let Some(frames) = state.quantum.filter(|frames| Some(*frames) != quantum(server)) {
        failures
            .note(format_args!("the quantum of {frames} frames"), server.set_quantum(frames))?;
    }
    let graph = Graph::read(server.registry());
    restore_aliases(server, state, &graph, &mut failures)?;
    restore_properties(server, state, &graph, &mut failures)?;
    restore_connections(server, state, &graph, unlisted, &mut failures)?;
    restore_volumes(server, state, &mut failures)?;
    if let Some(transport) = state.transport {
        let request = Request::Transport {
            roll: Some(transport.rolling),
            position: Some(transport.position().to_words()),
            sync_timeout_us: None,
        };
        failures.note(format_args!("the transport"), server.request(request))?;
    }
    Ok(failures.0)
}

fn quantum(server: &Observer) -> Option<u32> {
    server.engine().info().map(|info| info.quantum)
}

fn restore_aliases(
    server: &Observer,
    state: &State,
    graph: &Graph,
    failures: &mut Failures,
) -> Result<(), Error> {
    for (name, aliases) in &state.aliases {
        let port = graph.port_named(name).map(|port| &port.info);
        let is_missing = |alias: &&String| port.is_none_or(|port| !port.aliases.contains(alias));
        for alias in aliases.iter().filter(is_missing) {
            let set = match port {
                Some(port) => {
                    server.request(Request::SetAlias { port: port.id, alias: alias.clone() })
                }
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
    graph: &Graph,
    failures: &mut Failures,
) -> Result<(), Error> {
    let owners: HashMap<Owner, u64> = owners(graph).collect();
    let present = server.properties(None)?;
    for state::Property { owner, key, value, type_name } in &state.properties {
        let value = PropertyValue { text: value.clone(), type_name: type_name.clone() };
        let set = match owners.get(owner) {
            Some(subject) => {
                let property = Property { subject: *subject, key: key.clone(), value };
                if present.contains(&property) {
                    continue;
                }
                server.request(Request::Property(PropertyRequest::Set(property)))
            }
            None => Err(absent(owner)),
        };
        failures.note(format_args!("the property '{key}' of {owner}"), set)?;
    }
    Ok(())
}

fn restore_connections(
    server: &Observer,
    state: &State,
    graph: &Graph,
    unlisted: Unlisted,
    failures: &mut Failures,
) -> Result<(), Error> {
    let present = connections(graph);
    let superfluous = |connection: &&Connection| {
        unlisted == Unlisted::Disconnect && !state.connections.contains(connection)
    };
    for Connection { source, destination } in present.iter().filter(superfluous) {
        failures.note(
            format_args!("the end of the connection '{source}' to '{destination}'"),
            server.disconnect(source, destination),
        )?;
    }
    for connection in state.connections.iter().filter(|connection| !present.contains(connection)) {
        let Connection { source, destination } = connection;
        let made = match server.connect(source, destination) {
            Err(Error::Refused(RequestError::AlreadyConnected { .. })) => Ok(()),
            made => made,
        };
        failures.note(format_args!("the connection '{source}' to '{destination}'"), made)?;
    }
    Ok(())
}

/// Sets the volumes of devices, and of the streams of those names that there are now.
fn restore_volumes(server: &Observer, state: &State, failures: &mut Failures) -> Result<(), Error> {
    for state::DeviceVolume { device, volumes, muted } in &state.device_volumes {
        let set = server.set_device_volume(Some(device), ChannelGains::of(volumes), Some(*muted));
        failures.note(format_args!("the volume of the device '{device}'"), set.map(drop))?;
    }
    if state.stream_volumes.is_empty() {
        return Ok(());
    }
    for StreamStatus { stream: number, program, name, .. } in server.streams()? {
        let mut kept = state.stream_volumes.iter().rev();
        let is_it = |kept: &&StreamVolume| kept.program == program && kept.stream == name;
        if let Some(kept) = kept.find(is_it) {
            let set = server.set_volume(number, Some(kept.volume), Some(kept.muted));
            failures.note(format_args!("the volume of '{program}: {name}'"), set.map(drop))?;
        }
    }
    Ok(())
}

/// The refusal that the server itself would give.
fn absent(owner: &Owner) -> Error {
    Error::Refused(RequestError::Property(format!("there is no {owner}")))
}

/// Lines that say what could not be restored, and why.
#[derive(Debug, Default)]
struct Failures(Vec<String>);

impl Failures {
    /// Notes a refusal and continues. Returns any other failure, such as a server that has gone.
    fn note(
        &mut self,
        what: std::fmt::Arguments<'_>,
        result: Result<(), Error>,
    ) -> Result<(), Error> {
        match result {
            Err(Error::Refused(reason)) => self.0.push(format!("{what}: {reason}")),
            result => return result,
        }
        Ok(())
    }
}
