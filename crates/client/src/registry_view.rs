//! The current clients, ports and connections, read without a lock or a request.

use std::sync::atomic::Ordering::Relaxed;

use proto::port_flags::OUTPUT;
use proto::property::client_uuid;
use proto::request::PortType;
use rt::shm::state::{ACTIVE, FREE};
use rt::shm::{ALIASES_PER_PORT, FULL_NAME_BYTES, LatencyRange, PortEntry, Registry, Text};

/// Reads the registry. Ids begin at 1; a free or invalid id yields nothing. All methods may be
/// called from any thread and do not wait. Methods that return a `String` or a `Vec` allocate and
/// must not be called in a cycle.
#[derive(Debug, Clone, Copy)]
pub struct RegistryView<'a> {
    registry: Option<&'a Registry>,
}

/// Information about a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// Id in the registry.
    pub id: u32,
    /// Uuid.
    pub uuid: u64,
    /// Name.
    pub name: String,
    /// Process id, as the server sees it.
    pub process: u32,
    /// Takes part in cycles.
    pub active: bool,
    /// Left out of cycles, because it did not respond.
    pub bypassed: bool,
    /// Number of cycles in which it was late.
    pub late_cycles: u32,
}

/// Information about a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// Id in the registry.
    pub id: u32,
    /// Full name, `client:port`.
    pub name: String,
    /// `JackPortFlags`.
    pub flags: u32,
    /// Audio or MIDI.
    pub port_type: PortType,
    /// Id of its client.
    pub owner: u32,
    /// Its client takes part in cycles.
    pub active: bool,
    /// Alternative full names.
    pub aliases: Vec<String>,
}

fn text<const W: usize>(text: &Text<W>) -> String {
    let mut buffer = [0; FULL_NAME_BYTES];
    let length = text.copy_to(&mut buffer);
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

fn equals<const W: usize>(text: &Text<W>, name: &str) -> bool {
    let mut buffer = [0; FULL_NAME_BYTES];
    let length = text.copy_to(&mut buffer);
    buffer[..length] == *name.as_bytes()
}

fn port_type(entry: &PortEntry) -> PortType {
    if entry.port_type.load(Relaxed) == 0 { PortType::Audio } else { PortType::Midi }
}

impl PortInfo {
    /// Returns whether the port is an output.
    pub fn is_output(&self) -> bool {
        self.flags & OUTPUT != 0
    }
}

impl<'a> RegistryView<'a> {
    pub(crate) fn new(registry: &'a Registry) -> Self {
        Self { registry: Some(registry) }
    }

    /// Returns the view of a registry without clients and ports.
    pub(crate) fn empty() -> Self {
        Self { registry: None }
    }

    /// Returns the number of changes since the server started. An unchanged number means that
    /// nothing needs to be read again.
    pub fn changes(&self) -> u64 {
        self.registry.map_or(0, Registry::changes)
    }

    fn entry(&self, port: u32) -> Option<&'a PortEntry> {
        self.registry?.port(port).filter(|entry| entry.state.load(Relaxed) != FREE)
    }

    fn last_port(&self) -> u32 {
        self.registry.map_or(0, |registry| registry.shape().ports)
    }

    /// Returns the port with id `id`.
    pub fn port(&self, id: u32) -> Option<PortInfo> {
        self.entry(id)?.read(|entry| port_info(id, entry)).flatten()
    }

    /// Returns a port as a dead server has left it, possibly in the middle of a change.
    pub(crate) fn port_of_dead_server(&self, id: u32) -> Option<PortInfo> {
        let entry = self.entry(id)?;
        entry.read(|entry| port_info(id, entry)).unwrap_or_else(|| port_info(id, entry))
    }

    /// Iterates over all ports, by id.
    pub fn ports(self) -> impl Iterator<Item = PortInfo> + 'a {
        (1..=self.last_port()).filter_map(move |id| self.port(id))
    }

    /// Returns the id of the port with this full name or alias.
    pub fn port_by_name(&self, name: &str) -> Option<u32> {
        let is_named = |entry: &PortEntry| {
            equals(entry.name(), name)
                || entry.aliases.iter().any(|alias| !alias.is_empty() && equals(alias, name))
        };
        (1..=self.last_port()).find(|id| {
            self.entry(*id).is_some_and(|entry| {
                entry
                    .read(|entry| entry.state.load(Relaxed) != FREE && is_named(entry))
                    .unwrap_or(false)
            })
        })
    }

    /// Returns the address of a port's full name in the registry, zero-terminated, for C. It stays
    /// valid after the port is gone, and holds the last name until the id is used again.
    pub fn port_name_ptr(&self, port: u32) -> Option<*const u8> {
        let name = self.registry?.port(port)?.name();
        (!name.is_empty()).then(|| name.as_ptr())
    }

    /// Returns the port's flags.
    pub fn port_flags(&self, port: u32) -> Option<u32> {
        Some(self.entry(port)?.flags.load(Relaxed))
    }

    /// Returns the port's type.
    pub fn port_type(&self, port: u32) -> Option<PortType> {
        self.entry(port).map(port_type)
    }

    /// Returns the id of the port's client.
    pub fn port_owner(&self, port: u32) -> Option<u32> {
        Some(self.entry(port)?.owner.load(Relaxed))
    }

    /// Returns the number of the port's connections.
    pub fn port_connected(&self, port: u32) -> Option<u32> {
        Some(self.entry(port)?.connections.load(Relaxed))
    }

    /// Returns the number of the port's monitor requests.
    pub fn port_monitors(&self, port: u32) -> Option<u32> {
        Some(self.entry(port)?.monitors.load(Relaxed))
    }

    /// Returns the port's aliases.
    pub fn port_aliases(&self, port: u32) -> Option<[Option<String>; ALIASES_PER_PORT]> {
        let alias = |entry: &PortEntry, index: usize| {
            entry.aliases.get(index).filter(|alias| !alias.is_empty()).map(text)
        };
        self.entry(port)?.read(|entry| std::array::from_fn(|index| alias(entry, index)))
    }

    /// Returns the latency range of the paths through the port: capture latency if `capture`, else
    /// playback latency.
    pub fn port_latency(&self, port: u32, capture: bool) -> Option<LatencyRange> {
        Some(self.entry(port)?.latency(capture))
    }

    /// Returns the ids of the connected ports, oldest connection first.
    pub fn connections(&self, port: u32) -> Vec<u32> {
        let (Some(registry), Some(entry)) = (self.registry, self.entry(port)) else {
            return Vec::new();
        };
        let cells = entry.read(|entry| walk(registry, entry)).unwrap_or_default();
        cells.into_iter().map(|(other, _)| other).collect()
    }

    /// Like [`connections`](Self::connections), as a dead server has left them, each with its age.
    pub(crate) fn connections_of_dead_server(&self, port: u32) -> Vec<(u32, u64)> {
        let (Some(registry), Some(entry)) = (self.registry, self.entry(port)) else {
            return Vec::new();
        };
        entry.read(|entry| walk(registry, entry)).unwrap_or_else(|| walk(registry, entry))
    }

    /// Returns the client with id `id`.
    pub fn client(&self, id: u32) -> Option<ClientInfo> {
        self.registry?
            .client(id)?
            .read(|entry| {
                let state = entry.state.load(Relaxed);
                (state != FREE).then(|| ClientInfo {
                    id,
                    uuid: client_uuid(entry.uuid_number.load(Relaxed)),
                    name: text(&entry.name),
                    process: entry.process.load(Relaxed),
                    active: state == ACTIVE,
                    bypassed: entry.bypassed.load(Relaxed) != 0,
                    late_cycles: entry.late_cycles.load(Relaxed),
                })
            })
            .flatten()
    }

    /// Iterates over all clients, by id.
    pub fn clients(self) -> impl Iterator<Item = ClientInfo> + 'a {
        let last = self.registry.map_or(0, |registry| registry.shape().clients);
        (1..=last).filter_map(move |id| self.client(id))
    }
}

fn port_info(id: u32, entry: &PortEntry) -> Option<PortInfo> {
    let state = entry.state.load(Relaxed);
    (state != FREE).then(|| PortInfo {
        id,
        name: text(entry.name()),
        flags: entry.flags.load(Relaxed),
        port_type: port_type(entry),
        owner: entry.owner.load(Relaxed),
        active: state == ACTIVE,
        aliases: entry.aliases.iter().filter(|alias| !alias.is_empty()).map(text).collect(),
    })
}

/// Follows the port's list of connection cells, at most as many as it has connections: a list that
/// is being changed may end anywhere.
fn walk(registry: &Registry, entry: &PortEntry) -> Vec<(u32, u64)> {
    let count = entry.connections.load(Relaxed).min(registry.shape().connections);
    let output = entry.flags.load(Relaxed) & OUTPUT != 0;
    let mut next = entry.first_connection.load(Relaxed);
    let step = || {
        let cell = registry.connection(next.checked_sub(1)?)?;
        let (other, following) = if output {
            (&cell.destination, &cell.next_of_source)
        } else {
            (&cell.source, &cell.next_of_destination)
        };
        next = following.load(Relaxed);
        Some((other.load(Relaxed), cell.age.load(Relaxed)))
    };
    std::iter::from_fn(step).take(count as usize).collect()
}

#[cfg(test)]
mod tests {
    use rt::shm::RegistryShape;
    use sys::memory::SharedRegistry;

    use super::*;

    const SHAPE: RegistryShape = RegistryShape { ports: 4, clients: 2, connections: 4 };

    /// Ports 1 and 2 are outputs, 3 and 4 inputs; connected 1-3, 1-4, 2-3 in this order.
    fn registry() -> SharedRegistry {
        let (registry, _segment) = SharedRegistry::create(SHAPE).unwrap();
        for (id, name, flags, first, connections) in [
            (1, "synth:left", 2, 1, 2),
            (2, "synth:right", 2, 3, 1),
            (3, "mixer:a", 1, 1, 2),
            (4, "mixer:b", 1, 2, 1),
        ] {
            registry.port(id).unwrap().write(|entry| {
                entry.state.store(ACTIVE, Relaxed);
                entry.flags.store(flags, Relaxed);
                entry.first_connection.store(first, Relaxed);
                entry.connections.store(connections, Relaxed);
                entry.set_name(name);
            });
        }
        for (index, source, destination, next_of_source, next_of_destination) in
            [(0, 1, 3, 2, 3), (1, 1, 4, 0, 0), (2, 2, 3, 0, 0)]
        {
            let cell = registry.connection(index).unwrap();
            cell.source.store(source, Relaxed);
            cell.destination.store(destination, Relaxed);
            cell.next_of_source.store(next_of_source, Relaxed);
            cell.next_of_destination.store(next_of_destination, Relaxed);
        }
        registry
    }

    #[test]
    fn connections_are_listed_from_both_ends_in_their_order() {
        let registry = registry();
        let view = RegistryView::new(&registry);
        for (port, expected) in [(1, &[3, 4][..]), (2, &[3]), (3, &[1, 2]), (4, &[1]), (5, &[])] {
            assert_eq!(view.connections(port), expected, "port {port}");
        }
    }

    #[test]
    fn a_list_of_connections_that_runs_in_a_circle_ends() {
        let registry = registry();
        registry.connection(1).unwrap().next_of_source.store(1, Relaxed);
        assert_eq!(RegistryView::new(&registry).connections(1), [3, 4]);
    }

    #[test]
    fn a_port_is_found_only_by_its_full_names() {
        let registry = registry();
        registry.port(2).unwrap().write(|entry| entry.aliases[1].set("hw:2"));
        registry.port(4).unwrap().write(|entry| entry.state.store(FREE, Relaxed));
        let view = RegistryView::new(&registry);
        for (case, name, expected) in [
            ("name", "synth:right", Some(2)),
            ("alias", "hw:2", Some(2)),
            ("start of a name", "synth:", None),
            ("a port that is gone", "mixer:b", None),
            ("no alias", "", None),
        ] {
            assert_eq!(view.port_by_name(name), expected, "{case}");
        }
        assert_eq!(view.ports().map(|port| port.id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(view.port(2).unwrap().aliases, ["hw:2"]);
        assert!(view.port(4).is_none());
        assert!(
            view.port_name_ptr(4).is_some(),
            "programs ask for the name of a port that is gone"
        );
    }
}
