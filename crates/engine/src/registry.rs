//! Keeps the shared registry equal to the model. Thread: control.

use std::collections::HashMap;

use proto::request::PortType;
use rt::shm::state::{ACTIVE, FREE, REGISTERED};
use rt::shm::{ALIASES_PER_PORT, PortEntry};
use rt::sync::Ordering::{Relaxed, Release};
use sys::memory::SharedRegistry;

use crate::model::{Change, Model};

/// The registry, and which cells its connections use.
#[derive(Debug)]
pub struct Mirror {
    registry: SharedRegistry,
    cells: HashMap<(u32, u32), u32>,
    free_cells: Vec<u32>,
    unused_cells: u32,
}

impl Mirror {
    /// Creates the mirror of an empty model.
    pub fn new(registry: SharedRegistry) -> Self {
        Self { registry, cells: HashMap::new(), free_cells: Vec::new(), unused_cells: 0 }
    }

    /// Returns how many changes were applied.
    pub fn changes(&self) -> u64 {
        self.registry.changes()
    }

    /// Writes a client's process, for other programs to read.
    pub fn note_process(&self, client: u32, process: u32) {
        if let Some(entry) = self.registry.client(client) {
            entry.write(|entry| entry.process.store(process, Relaxed));
        }
    }

    /// Writes how many cycles a client has been late, and whether it is suspended.
    pub fn note_late(&self, client: u32, late_cycles: u64, bypassed: bool) {
        if let Some(entry) = self.registry.client(client) {
            entry.late_cycles.store(u32::try_from(late_cycles).unwrap_or(u32::MAX), Relaxed);
            entry.bypassed.store(u32::from(bypassed), Release);
        }
    }

    /// Writes a port's latencies.
    pub fn note_latency(&self, model: &Model, port: u32) {
        let Some((port, entry)) = model.port(port).zip(self.registry.port(port)) else { return };
        entry.write(|entry| {
            entry.set_latency(true, port.capture_latency);
            entry.set_latency(false, port.playback_latency);
        });
    }

    /// Applies one change. `model` is the state after all changes.
    pub fn apply(&mut self, model: &Model, change: &Change) {
        match change {
            Change::ClientOpened(client) => self.write_client(model, *client),
            Change::ClientActivity(client) => self.write_activity(model, *client),
            Change::ClientClosed { client, .. } => self.free_client(*client),
            Change::PortRegistered(port) => self.write_port(model, *port),
            Change::PortUnregistered { port, .. } => self.free_port(*port),
            Change::PortRenamed { port, new, .. } => {
                if let Some(entry) = self.registry.port(*port) {
                    entry.write(|entry| entry.set_name(new));
                }
            }
            Change::Property { .. } => {}
            Change::PortMonitors(port) => {
                if let Some((port, entry)) = model.port(*port).zip(self.registry.port(*port)) {
                    entry.monitors.store(port.monitors, Relaxed);
                }
            }
            Change::PortAliases(port) => {
                if let Some((port, entry)) = model.port(*port).zip(self.registry.port(*port)) {
                    entry.write(|entry| write_aliases(entry, &port.aliases));
                }
            }
            Change::Connected { source, destination } => {
                let links = model.port(*source).into_iter().flat_map(|port| &port.links);
                // A later change may have removed the connection; that change also frees the cell.
                let age =
                    links.filter(|link| link.other == *destination).map(|link| link.age).next();
                self.link(*source, *destination, age.unwrap_or(0));
            }
            Change::Disconnected { source, destination } => self.unlink(*source, *destination),
        }
        self.registry.note_change();
    }

    fn write_client(&self, model: &Model, id: u32) {
        let Some((client, entry)) = model.client(id).zip(self.registry.client(id)) else { return };
        entry.write(|entry| {
            entry.name.set(&client.name);
            // The lower half: the upper one is the same for all clients.
            entry.uuid_number.store(client.uuid as u32, Relaxed);
            entry.late_cycles.store(0, Relaxed);
            entry.bypassed.store(0, Relaxed);
            entry.state.store(if client.active { ACTIVE } else { REGISTERED }, Relaxed);
        });
    }

    fn free_client(&self, id: u32) {
        if let Some(entry) = self.registry.client(id) {
            entry.write(|entry| entry.state.store(FREE, Relaxed));
        }
    }

    fn write_activity(&self, model: &Model, id: u32) {
        let Some((client, entry)) = model.client(id).zip(self.registry.client(id)) else { return };
        let state = if client.active { ACTIVE } else { REGISTERED };
        entry.write(|entry| entry.state.store(state, Relaxed));
        for port in client.ports.iter().filter_map(|port| self.registry.port(*port)) {
            port.write(|port| port.state.store(state, Relaxed));
        }
    }

    fn write_port(&self, model: &Model, id: u32) {
        let Some((port, entry)) = model.port(id).zip(self.registry.port(id)) else { return };
        let active = model.client(port.owner).is_some_and(|client| client.active);
        entry.write(|entry| {
            entry.set_name(&port.name);
            write_aliases(entry, &port.aliases);
            entry.flags.store(port.flags, Relaxed);
            entry.port_type.store(u32::from(port.port_type == PortType::Midi), Relaxed);
            entry.owner.store(port.owner, Relaxed);
            entry.connections.store(0, Relaxed);
            entry.first_connection.store(0, Relaxed);
            entry.last_connection.store(0, Relaxed);
            entry.monitors.store(0, Relaxed);
            entry.set_latency(true, port.capture_latency);
            entry.set_latency(false, port.playback_latency);
            entry.state.store(if active { ACTIVE } else { REGISTERED }, Relaxed);
        });
    }

    /// Frees the port's entry. Its name stays: programs read it when they are notified that the
    /// port has gone.
    fn free_port(&self, id: u32) {
        if let Some(entry) = self.registry.port(id) {
            entry.write(|entry| entry.state.store(FREE, Relaxed));
        }
    }

    fn link(&mut self, source: u32, destination: u32, age: u64) {
        let index = self.free_cells.pop().unwrap_or_else(|| {
            self.unused_cells += 1;
            self.unused_cells - 1
        });
        let (Some(from), Some(to)) = (self.registry.port(source), self.registry.port(destination))
        else {
            return;
        };
        let Some(cell) = self.registry.connection(index) else { return };
        self.cells.insert((source, destination), index);
        cell.age.store(age, Relaxed);
        from.write(|from| {
            to.write(|to| {
                cell.source.store(source, Relaxed);
                cell.destination.store(destination, Relaxed);
                cell.next_of_source.store(0, Relaxed);
                cell.next_of_destination.store(0, Relaxed);
                for (port, is_source) in [(from, true), (to, false)] {
                    let last = port.last_connection.load(Relaxed);
                    match last.checked_sub(1).and_then(|last| self.registry.connection(last)) {
                        Some(last) if is_source => last.next_of_source.store(index + 1, Relaxed),
                        Some(last) => last.next_of_destination.store(index + 1, Relaxed),
                        None => port.first_connection.store(index + 1, Relaxed),
                    }
                    port.last_connection.store(index + 1, Relaxed);
                    port.connections.fetch_add(1, Relaxed);
                }
            });
        });
    }

    fn unlink(&mut self, source: u32, destination: u32) {
        let Some(index) = self.cells.remove(&(source, destination)) else { return };
        let (Some(from), Some(to)) = (self.registry.port(source), self.registry.port(destination))
        else {
            return;
        };
        from.write(|from| {
            to.write(|to| {
                self.remove_from_list(from, index, true);
                self.remove_from_list(to, index, false);
            });
        });
        self.free_cells.push(index);
    }

    fn remove_from_list(&self, port: &PortEntry, index: u32, is_source: bool) {
        let next = |cell: u32| {
            let cell = cell.checked_sub(1).and_then(|cell| self.registry.connection(cell));
            cell.map(
                |cell| if is_source { &cell.next_of_source } else { &cell.next_of_destination },
            )
        };
        let after = next(index + 1).map_or(0, |next| next.load(Relaxed));
        let mut before = 0;
        let mut at = port.first_connection.load(Relaxed);
        while at != 0 && at != index + 1 {
            before = at;
            at = next(at).map_or(0, |next| next.load(Relaxed));
        }
        next(before).unwrap_or(&port.first_connection).store(after, Relaxed);
        if port.last_connection.load(Relaxed) == index + 1 {
            port.last_connection.store(before, Relaxed);
        }
        port.connections.fetch_sub(1, Relaxed);
    }
}

fn write_aliases(entry: &PortEntry, aliases: &[String]) {
    for index in 0..ALIASES_PER_PORT {
        entry.aliases[index].set(aliases.get(index).map_or("", String::as_str));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Limits;
    use proto::port_flags;
    use proto::request::NewPort;
    use rt::shm::RegistryShape;

    fn listed(mirror: &Mirror, port: u32, is_source: bool) -> Vec<u32> {
        let entry = mirror.registry.port(port).unwrap();
        let (mut at, mut others) = (entry.first_connection.load(Relaxed), Vec::new());
        while let Some(cell) = at.checked_sub(1).and_then(|cell| mirror.registry.connection(cell)) {
            let (other, next) = match is_source {
                true => (&cell.destination, &cell.next_of_source),
                false => (&cell.source, &cell.next_of_destination),
            };
            others.push(other.load(Relaxed));
            at = next.load(Relaxed);
        }
        assert_eq!(others.len(), entry.connections.load(Relaxed) as usize);
        others
    }

    #[test]
    fn both_ends_list_their_connections_in_the_order_in_which_they_were_made() {
        let shape = RegistryShape { ports: 8, clients: 2, connections: 16 };
        let mut mirror = Mirror::new(SharedRegistry::create(shape).unwrap().0);
        let mut model = Model::new(Limits { clients: 2, ports: 8, connections: 16 });
        let client = model.open_client("c", true).unwrap();
        for number in 0..8 {
            let flags = if number % 2 == 0 { port_flags::OUTPUT } else { port_flags::INPUT };
            let new = NewPort {
                name: number.to_string(),
                port_type: PortType::Audio,
                flags,
                number,
                slot: None,
            };
            model.register_port(client, &new).unwrap();
        }
        model.set_active(client, true);
        let mut seed = 7_u32;
        for _ in 0..500 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (source, destination) =
                (format!("c:{}", (seed >> 24) % 4 * 2), format!("c:{}", (seed >> 16) % 4 * 2 + 1));
            if model.disconnect(&source, &destination).is_err() {
                model.connect(&source, &destination).unwrap();
            }
            for change in model.take_changes() {
                mirror.apply(&model, &change);
            }
            for port in model.ports_of(client) {
                let expected: Vec<u32> = port.links.iter().map(|link| link.other).collect();
                assert_eq!(listed(&mirror, port.id, port.is_output()), expected);
            }
        }
    }
}
