//! A snapshot of the graph: clients, ports and connections at one moment.

use std::collections::BTreeMap;

use client::{ClientInfo, PortInfo, RegistryView};
use rt::shm::LatencyRange;

/// A port with its connections and latencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Names, type, flags and client.
    pub info: PortInfo,
    /// Ids of the ports at the other ends of its connections, oldest connection first.
    pub peers: Vec<u32>,
    /// Latency from the capture side to the port, frames.
    pub capture_latency: LatencyRange,
    /// Latency from the port to the playback side, frames.
    pub playback_latency: LatencyRange,
}

/// Clients, ports and connections at one moment, by the server's ids.
///
/// It is consistent: the client of each port is part of it, and so are both ends of each
/// connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    clients: BTreeMap<u32, ClientInfo>,
    ports: BTreeMap<u32, Port>,
}

impl Graph {
    /// Reads the registry. The server may change it meanwhile: an incomplete item, such as a port
    /// whose client was not there yet, is left out until the next reading.
    #[must_use]
    pub fn read(registry: RegistryView<'_>) -> Self {
        let port = |info: PortInfo| Port {
            peers: registry.connections(info.id),
            capture_latency: registry.port_latency(info.id, true).unwrap_or_default(),
            playback_latency: registry.port_latency(info.id, false).unwrap_or_default(),
            info,
        };
        Self::new(registry.clients(), registry.ports().map(port))
    }

    /// The graph of these clients and ports, without the ports of other clients and without
    /// connections to other ports.
    pub fn new(
        clients: impl IntoIterator<Item = ClientInfo>,
        ports: impl IntoIterator<Item = Port>,
    ) -> Self {
        let clients: BTreeMap<u32, ClientInfo> =
            clients.into_iter().map(|client| (client.id, client)).collect();
        let mut ports: BTreeMap<u32, Port> = ports
            .into_iter()
            .filter(|port| clients.contains_key(&port.info.owner))
            .map(|port| (port.info.id, port))
            .collect();
        let known: Vec<u32> = ports.keys().copied().collect();
        for port in ports.values_mut() {
            port.peers.retain(|peer| known.binary_search(peer).is_ok());
        }
        Self { clients, ports }
    }

    /// All clients, by id.
    pub fn clients(&self) -> impl Iterator<Item = &ClientInfo> {
        self.clients.values()
    }

    /// The client `id`.
    #[must_use]
    pub fn client(&self, id: u32) -> Option<&ClientInfo> {
        self.clients.get(&id)
    }

    /// All ports, by id.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.values()
    }

    /// The ports of one client, by id.
    pub fn ports_of(&self, client: u32) -> impl Iterator<Item = &Port> {
        self.ports().filter(move |port| port.info.owner == client)
    }

    /// The port `id`.
    #[must_use]
    pub fn port(&self, id: u32) -> Option<&Port> {
        self.ports.get(&id)
    }

    /// The port of this full name. Aliases are not searched.
    #[must_use]
    pub fn port_named(&self, name: &str) -> Option<&Port> {
        self.ports().find(|port| port.info.name == name)
    }

    /// The ports at the other ends of a port's connections, oldest connection first.
    pub fn peers<'a>(&'a self, port: &'a Port) -> impl Iterator<Item = &'a Port> {
        port.peers.iter().filter_map(|peer| self.port(*peer))
    }

    /// All connections, each as its output port and its input port: by the output's id, then oldest
    /// first.
    pub fn connections(&self) -> impl Iterator<Item = (&Port, &Port)> {
        let outputs = self.ports().filter(|port| port.info.is_output());
        outputs.flat_map(|source| self.peers(source).map(move |destination| (source, destination)))
    }
}

/// Takes a snapshot of the graph when the registry has changed.
#[derive(Debug, Default)]
pub struct GraphFollower {
    /// The registry's count of changes before it was last read.
    seen: Option<u64>,
}

impl GraphFollower {
    /// Returns the graph if it has changed since the previous call, and at the first call.
    pub fn poll(&mut self, registry: RegistryView<'_>) -> Option<Graph> {
        // Taken before the registry is read: the next poll sees a change during the reading.
        let changes = registry.changes();
        if self.seen == Some(changes) {
            return None;
        }
        self.seen = Some(changes);
        Some(Graph::read(registry))
    }
}

#[cfg(test)]
mod tests {
    use client::PortType;
    use client::port_flags::{INPUT, OUTPUT};

    use super::*;

    fn client(id: u32) -> ClientInfo {
        ClientInfo {
            id,
            uuid: u64::from(id),
            name: format!("client-{id}"),
            process: 7,
            active: true,
            bypassed: false,
            late_cycles: 0,
        }
    }

    fn port(id: u32, owner: u32, flags: u32, peers: &[u32]) -> Port {
        let info = PortInfo {
            id,
            name: format!("client-{owner}:port-{id}"),
            flags,
            port_type: PortType::Audio,
            owner,
            active: true,
            aliases: Vec::new(),
        };
        let latency = LatencyRange::default();
        let peers = peers.to_vec();
        Port { info, peers, capture_latency: latency, playback_latency: latency }
    }

    fn ends(graph: &Graph) -> Vec<(u32, u32)> {
        graph.connections().map(|(source, input)| (source.info.id, input.info.id)).collect()
    }

    #[test]
    fn each_connection_is_listed_once_in_its_order() {
        let ports = [port(1, 1, OUTPUT, &[4, 3]), port(3, 2, INPUT, &[1]), port(4, 2, INPUT, &[1])];
        let graph = Graph::new([client(1), client(2)], ports);
        assert_eq!(ends(&graph), [(1, 4), (1, 3)]);
        assert_eq!(graph.port_named("client-2:port-4").map(|port| port.info.id), Some(4));
        assert_eq!(graph.ports_of(2).map(|port| port.info.id).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn incomplete_items_are_left_out() {
        let ports =
            [port(1, 1, OUTPUT, &[2, 3, 9]), port(2, 2, INPUT, &[1]), port(3, 5, INPUT, &[1])];
        let graph = Graph::new([client(1), client(2)], ports);
        assert_eq!(graph.ports().map(|port| port.info.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(ends(&graph), [(1, 2)]);
    }
}
