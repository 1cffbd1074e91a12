//! The graph as the bus shows it: with a version, and a number for each connection.

use std::collections::{BTreeMap, BTreeSet};

use client::{ClientInfo, PortInfo, PortType};
use observe::{Graph, Port};

/// A signal about a change of the graph: the version after the change, then what changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GraphSignal {
    GraphChanged(u64),
    ClientAppeared((u64, u64, String)),
    ClientDisappeared((u64, u64, String)),
    PortAppeared((u64, u64, String, u64, String, u32, u32)),
    PortDisappeared((u64, u64, String, u64, String)),
    PortRenamed((u64, u64, u64, String, String, String)),
    PortsConnected(ConnectionEnds),
    PortsDisconnected(ConnectionEnds),
}

/// A connection: version, client, port, client, port, number of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionEnds(
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) String,
    pub(crate) u64,
    pub(crate) String,
    pub(crate) u64,
    pub(crate) String,
    pub(crate) u64,
    pub(crate) String,
    pub(crate) u64,
);

/// A client with its ports, as `GetGraph` lists it.
pub(crate) type ListedClient = (u64, String, Vec<(u64, String, u32, u32)>);
/// A connection as `GetGraph` lists it: client, port, client, port, number of the connection.
pub(crate) type ListedConnection = (u64, String, u64, String, u64, String, u64, String, u64);

/// The graph, with a version that grows with each change.
#[derive(Debug)]
pub(crate) struct VersionedGraph {
    pub(crate) version: u64,
    graph: Graph,
    /// Numbers of the connections, by source and destination.
    numbers: BTreeMap<(u32, u32), u64>,
    last_number: u64,
}

impl Default for VersionedGraph {
    fn default() -> Self {
        // Programs that know no version yet send version 0.
        Self { version: 1, graph: Graph::default(), numbers: BTreeMap::new(), last_number: 0 }
    }
}

impl VersionedGraph {
    /// Replaces the graph. Returns the signals about what changed, in an order that makes sense to
    /// a program that follows them: ports appear after their client and disappear before it.
    pub(crate) fn update(&mut self, new: Graph) -> Vec<GraphSignal> {
        let old = std::mem::take(&mut self.graph);
        let mut signals = Vec::new();
        self.signal_disappeared(&old, &new, &mut signals);
        self.signal_appeared(&old, &new, &mut signals);
        self.graph = new;
        if !signals.is_empty() {
            signals.push(GraphSignal::GraphChanged(self.version));
        }
        signals
    }

    fn signal_disappeared(&mut self, old: &Graph, new: &Graph, signals: &mut Vec<GraphSignal>) {
        let remaining: BTreeSet<(u32, u32)> = new.connections().map(ids).collect();
        for (source, destination) in old.connections() {
            let ids = ids((source, destination));
            let remains = remaining.contains(&ids)
                && is_same_port(old, new, ids.0)
                && is_same_port(old, new, ids.1);
            if !remains && let Some(number) = self.numbers.remove(&ids) {
                let ends = connection_ends(old, self.next(), source, destination, number);
                signals.push(GraphSignal::PortsDisconnected(ends));
            }
        }
        for port in old.ports().map(|port| &port.info) {
            if !is_same_port(old, new, port.id) {
                let (client, name) = client_of(old, port);
                let change = (self.next(), client, name, u64::from(port.id), short_name(port));
                signals.push(GraphSignal::PortDisappeared(change));
            }
        }
        for ClientInfo { id, name, .. } in old.clients() {
            if !is_same_client(old, new, *id) {
                let change = (self.next(), u64::from(*id), name.clone());
                signals.push(GraphSignal::ClientDisappeared(change));
            }
        }
    }

    fn signal_appeared(&mut self, old: &Graph, new: &Graph, signals: &mut Vec<GraphSignal>) {
        for ClientInfo { id, name, .. } in new.clients() {
            if !is_same_client(old, new, *id) {
                let change = (self.next(), u64::from(*id), name.clone());
                signals.push(GraphSignal::ClientAppeared(change));
            }
        }
        for port in new.ports().map(|port| &port.info) {
            let (client, name) = client_of(new, port);
            let (id, short) = (u64::from(port.id), short_name(port));
            match old.port(port.id).filter(|_| is_same_port(old, new, port.id)) {
                None => {
                    let change = (self.next(), client, name, id, short, port.flags, kind(port));
                    signals.push(GraphSignal::PortAppeared(change));
                }
                Some(before) if short_name(&before.info) != short => {
                    let before = short_name(&before.info);
                    let change = (self.next(), id, client, name, before, short);
                    signals.push(GraphSignal::PortRenamed(change));
                }
                Some(_) => {}
            }
        }
        for (source, destination) in new.connections() {
            let ids = ids((source, destination));
            if !self.numbers.contains_key(&ids) {
                self.last_number += 1;
                self.numbers.insert(ids, self.last_number);
                let number = self.last_number;
                let ends = connection_ends(new, self.next(), source, destination, number);
                signals.push(GraphSignal::PortsConnected(ends));
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// All clients with their ports.
    pub(crate) fn clients(&self) -> Vec<ListedClient> {
        let listed = |port: &Port| {
            let port = &port.info;
            (u64::from(port.id), short_name(port), port.flags, kind(port))
        };
        let clients = self.graph.clients().map(|client| {
            let ports = self.graph.ports_of(client.id).map(listed).collect();
            (u64::from(client.id), client.name.clone(), ports)
        });
        clients.collect()
    }

    /// All connections, oldest first.
    pub(crate) fn connections(&self) -> Vec<ListedConnection> {
        let mut numbered: Vec<_> =
            self.numbers.iter().map(|(ids, number)| (*number, *ids)).collect();
        numbered.sort_unstable();
        let listed = |(number, (source, destination))| {
            let (source, destination) = (self.graph.port(source)?, self.graph.port(destination)?);
            let ends = connection_ends(&self.graph, 0, source, destination, number);
            let ConnectionEnds(_, a, b, c, d, e, f, g, h, i) = ends;
            Some((a, b, c, d, e, f, g, h, i))
        };
        numbered.into_iter().filter_map(listed).collect()
    }

    /// The full names of all ports, by id.
    pub(crate) fn port_names(&self) -> Vec<String> {
        self.graph.ports().map(|port| port.info.name.clone()).collect()
    }

    /// The full name of a port.
    pub(crate) fn port_name(&self, id: u64) -> Option<String> {
        Some(self.graph.port(u32::try_from(id).ok()?)?.info.name.clone())
    }

    /// The source and the destination of the connection of this number.
    pub(crate) fn connection(&self, number: u64) -> Option<(u64, u64)> {
        let found = self.numbers.iter().find(|(_, known)| **known == number);
        found.map(|((source, destination), _)| (u64::from(*source), u64::from(*destination)))
    }

    /// The process of a client.
    pub(crate) fn process(&self, client: u64) -> Option<u32> {
        Some(self.graph.client(u32::try_from(client).ok()?)?.process)
    }
}

fn ids((source, destination): (&Port, &Port)) -> (u32, u32) {
    (source.info.id, destination.info.id)
}

/// The name after the colon.
fn short_name(port: &PortInfo) -> String {
    proto::names::short(&port.name).to_owned()
}

/// 0 audio, 1 MIDI.
fn kind(port: &PortInfo) -> u32 {
    u32::from(port.port_type == PortType::Midi)
}

/// Id and name of a port's client.
fn client_of(graph: &Graph, port: &PortInfo) -> (u64, String) {
    let name = graph.client(port.owner).map(|client| client.name.clone());
    (u64::from(port.owner), name.unwrap_or_default())
}

/// Whether `id` is the same client in both graphs. The server reuses the ids of clients that have
/// left.
fn is_same_client(old: &Graph, new: &Graph, id: u32) -> bool {
    match (old.client(id), new.client(id)) {
        (Some(old), Some(new)) => (&old.name, old.process) == (&new.name, new.process),
        _ => false,
    }
}

/// Whether `id` is the same port in both graphs, perhaps with another name.
fn is_same_port(old: &Graph, new: &Graph, id: u32) -> bool {
    let traits = |port: &PortInfo| (port.owner, port.flags, port.port_type);
    match (old.port(id), new.port(id)) {
        (Some(before), Some(now)) => {
            is_same_client(old, new, now.info.owner) && traits(&before.info) == traits(&now.info)
        }
        _ => false,
    }
}

fn connection_ends(
    graph: &Graph,
    version: u64,
    source: &Port,
    destination: &Port,
    number: u64,
) -> ConnectionEnds {
    let end = |port: &PortInfo| {
        let (client, name) = client_of(graph, port);
        (client, name, u64::from(port.id), short_name(port))
    };
    let ((a, b, c, d), (e, f, g, h)) = (end(&source.info), end(&destination.info));
    ConnectionEnds(version, a, b, c, d, e, f, g, h, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: u32, name: &str) -> ClientInfo {
        ClientInfo {
            id,
            uuid: u64::from(id),
            name: name.into(),
            process: 7,
            active: true,
            bypassed: false,
            late_cycles: 0,
        }
    }

    const OUTPUT: u32 = client::port_flags::OUTPUT;

    fn graph(
        clients: &[(u32, &str)],
        ports: &[(u32, u32, &str)],
        connections: &[(u32, u32)],
    ) -> Graph {
        let port = |&(id, owner, name): &(u32, u32, &str)| {
            let peers = connections.iter().filter(|(source, _)| *source == id);
            let info = PortInfo {
                id,
                name: format!("client:{name}"),
                flags: OUTPUT,
                port_type: PortType::Audio,
                owner,
                active: true,
                aliases: Vec::new(),
            };
            Port {
                info,
                peers: peers.map(|(_, peer)| *peer).collect(),
                capture_latency: Default::default(),
                playback_latency: Default::default(),
            }
        };
        let clients = clients.iter().map(|(id, name)| client(*id, name));
        Graph::new(clients, ports.iter().map(port))
    }

    const BOTH: &[(u32, &str)] = &[(1, "a"), (2, "b")];

    #[test]
    fn each_change_is_signaled_once_with_its_own_version() {
        let mut versioned = VersionedGraph::default();
        let first = graph(BOTH, &[(1, 1, "out"), (2, 2, "in")], &[(1, 2)]);
        let signals = versioned.update(first.clone());
        let connected =
            ConnectionEnds(6, 1, "a".into(), 1, "out".into(), 2, "b".into(), 2, "in".into(), 1);
        assert_eq!(
            signals,
            [
                GraphSignal::ClientAppeared((2, 1, "a".into())),
                GraphSignal::ClientAppeared((3, 2, "b".into())),
                GraphSignal::PortAppeared((4, 1, "a".into(), 1, "out".into(), OUTPUT, 0)),
                GraphSignal::PortAppeared((5, 2, "b".into(), 2, "in".into(), OUTPUT, 0)),
                GraphSignal::PortsConnected(connected),
                GraphSignal::GraphChanged(6),
            ]
        );
        assert_eq!(versioned.update(first), []);
        let signals = versioned.update(graph(BOTH, &[(1, 1, "left"), (2, 2, "in")], &[(1, 2)]));
        let renamed = GraphSignal::PortRenamed((7, 1, 1, "a".into(), "out".into(), "left".into()));
        assert_eq!(signals, [renamed, GraphSignal::GraphChanged(7)], "it stays connected");
        let signals = versioned.update(graph(&[(1, "a")], &[(1, 1, "left")], &[]));
        let gone =
            ConnectionEnds(8, 1, "a".into(), 1, "left".into(), 2, "b".into(), 2, "in".into(), 1);
        assert_eq!(
            signals,
            [
                GraphSignal::PortsDisconnected(gone),
                GraphSignal::PortDisappeared((9, 2, "b".into(), 2, "in".into())),
                GraphSignal::ClientDisappeared((10, 2, "b".into())),
                GraphSignal::GraphChanged(10),
            ]
        );
    }

    #[test]
    fn a_client_that_gets_the_id_of_another_is_a_new_client() {
        let (ports, connections) = ([(1, 1, "out"), (2, 2, "in")], [(1, 2)]);
        let mut versioned = VersionedGraph::default();
        versioned.update(graph(BOTH, &ports, &connections));
        let signals = versioned.update(graph(&[(1, "x"), (2, "b")], &ports, &connections));
        let kinds: Vec<&str> = signals
            .iter()
            .map(|signal| match signal {
                GraphSignal::PortsDisconnected(_) => "disconnected",
                GraphSignal::PortDisappeared(_) => "port disappeared",
                GraphSignal::ClientDisappeared(_) => "client disappeared",
                GraphSignal::ClientAppeared(_) => "client appeared",
                GraphSignal::PortAppeared(_) => "port appeared",
                GraphSignal::PortsConnected(_) => "connected",
                GraphSignal::GraphChanged(_) => "changed",
                GraphSignal::PortRenamed(_) => "renamed",
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "disconnected",
                "port disappeared",
                "client disappeared",
                "client appeared",
                "port appeared",
                "connected",
                "changed"
            ]
        );
        assert_eq!(versioned.connection(1), None);
        assert_eq!(versioned.connection(2), Some((1, 2)));
    }

    #[test]
    fn a_client_that_becomes_active_is_not_a_change() {
        let mut versioned = VersionedGraph::default();
        versioned.update(Graph::new([ClientInfo { active: false, ..client(1, "a") }], []));
        assert_eq!(versioned.update(Graph::new([client(1, "a")], [])), []);
    }
}
