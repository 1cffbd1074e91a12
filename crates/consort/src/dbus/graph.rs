//! The graph as the bus knows it: its version, and what has changed since it was looked at last.

use std::collections::BTreeMap;

use client::{Observer, PortType};

/// `JackPortFlags` and type of a port, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) client: u32,
    /// After the colon.
    pub(super) name: String,
    pub(super) flags: u32,
    /// 0 audio, 1 MIDI.
    pub(super) kind: u32,
}

/// What there is at a moment, by the server's ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Picture {
    /// Name and process.
    pub(super) clients: BTreeMap<u32, (String, u32)>,
    pub(super) ports: BTreeMap<u32, Port>,
    /// Source and destination.
    pub(super) connections: Vec<(u32, u32)>,
}

impl Picture {
    /// What the registry shows now.
    pub(super) fn of(server: &Observer) -> Self {
        let registry = server.registry();
        let clients = registry.clients().map(|client| (client.id, (client.name, client.process))).collect();
        let mut picture = Self { clients, ..Self::default() };
        for port in registry.ports() {
            if port.is_output() {
                let peers = registry.connections(port.id).into_iter();
                picture.connections.extend(peers.map(|peer| (port.id, peer)));
            }
            let name = proto::names::short(&port.name).to_owned();
            let kind = u32::from(port.port_type == PortType::Midi);
            picture.ports.insert(port.id, Port { client: port.owner, name, flags: port.flags, kind });
        }
        // What is half seen is seen whole the next time: ends that are not here, ports of nobody.
        let Self { clients, ports, connections } = &mut picture;
        ports.retain(|_, port| clients.contains_key(&port.client));
        connections.retain(|(one, other)| ports.contains_key(one) && ports.contains_key(other));
        picture
    }
}

/// What the bus is told: version, then what is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    GraphChanged(u64),
    ClientAppeared((u64, u64, String)),
    ClientDisappeared((u64, u64, String)),
    PortAppeared((u64, u64, String, u64, String, u32, u32)),
    PortDisappeared((u64, u64, String, u64, String)),
    PortRenamed((u64, u64, u64, String, String, String)),
    PortsConnected(Ends),
    PortsDisconnected(Ends),
}

/// A connection: version, client, port, client, port, number of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ends(
    pub(super) u64,
    pub(super) u64,
    pub(super) String,
    pub(super) u64,
    pub(super) String,
    pub(super) u64,
    pub(super) String,
    pub(super) u64,
    pub(super) String,
    pub(super) u64,
);

/// As `GetGraph` lists it: a client and its ports.
pub(super) type ListedClient = (u64, String, Vec<(u64, String, u32, u32)>);
/// As `GetGraph` lists it: client, port, client, port, number of the connection.
pub(super) type ListedConnection = (u64, String, u64, String, u64, String, u64, String, u64);

/// The graph, with a version that grows with each change.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) version: u64,
    picture: Picture,
    /// Numbers of the connections.
    numbers: BTreeMap<(u32, u32), u64>,
    last_number: u64,
}

impl Default for Graph {
    fn default() -> Self {
        // 0 is what those say who know none.
        Self { version: 1, picture: Picture::default(), numbers: BTreeMap::new(), last_number: 0 }
    }
}

impl Graph {
    /// The graph is another one now; what there is to be told of it, in an order in which it can be understood.
    pub(super) fn become_like(&mut self, new: Picture) -> Vec<Told> {
        if new == self.picture {
            return Vec::new();
        }
        let mut told = Vec::new();
        let old = std::mem::take(&mut self.picture);
        let is_same = |id: &u32| match (old.ports.get(id), new.ports.get(id)) {
            (Some(before), Some(now)) => {
                is_same_client(&old, &new, now.client)
                    && Port { name: now.name.clone(), ..before.clone() } == *now
            }
            _ => false,
        };
        for (source, destination) in old.connections.iter().copied() {
            let goes = !new.connections.contains(&(source, destination))
                || !is_same(&source)
                || !is_same(&destination);
            if goes && let Some(number) = self.numbers.remove(&(source, destination)) {
                let version = self.next();
                told.extend(ends(&old, version, source, destination, number).map(Told::PortsDisconnected));
            }
        }
        for (id, port) in old.ports.iter().filter(|(id, _)| !is_same(id)) {
            let client = name_of(&old, port.client);
            let change = (self.next(), u64::from(port.client), client, u64::from(*id), port.name.clone());
            told.push(Told::PortDisappeared(change));
        }
        for (id, (name, _)) in old.clients.iter().filter(|(id, _)| !is_same_client(&old, &new, **id)) {
            told.push(Told::ClientDisappeared((self.next(), u64::from(*id), name.clone())));
        }
        for (id, (name, _)) in new.clients.iter().filter(|(id, _)| !is_same_client(&old, &new, **id)) {
            told.push(Told::ClientAppeared((self.next(), u64::from(*id), name.clone())));
        }
        for (id, port) in &new.ports {
            let client = name_of(&new, port.client);
            let (client_id, port_id) = (u64::from(port.client), u64::from(*id));
            match old.ports.get(id).filter(|_| is_same(id)) {
                None => told.push(Told::PortAppeared((
                    self.next(),
                    client_id,
                    client,
                    port_id,
                    port.name.clone(),
                    port.flags,
                    port.kind,
                ))),
                Some(before) if before.name != port.name => {
                    let names = (before.name.clone(), port.name.clone());
                    let version = self.next();
                    told.push(Told::PortRenamed((version, port_id, client_id, client, names.0, names.1)));
                }
                Some(_) => {}
            }
        }
        for (source, destination) in new.connections.iter().copied() {
            if !self.numbers.contains_key(&(source, destination)) {
                self.last_number += 1;
                self.numbers.insert((source, destination), self.last_number);
                let version = self.next();
                let made = ends(&new, version, source, destination, self.last_number);
                told.extend(made.map(Told::PortsConnected));
            }
        }
        self.picture = new;
        if !told.is_empty() {
            told.push(Told::GraphChanged(self.version));
        }
        told
    }

    fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// All clients with their ports.
    pub(super) fn clients(&self) -> Vec<ListedClient> {
        let ports = |client: u32| {
            let own = self.picture.ports.iter().filter(move |(_, port)| port.client == client);
            own.map(|(id, port)| (u64::from(*id), port.name.clone(), port.flags, port.kind)).collect()
        };
        let clients = self.picture.clients.iter();
        clients.map(|(id, (name, _))| (u64::from(*id), name.clone(), ports(*id))).collect()
    }

    /// All connections, oldest first.
    pub(super) fn connections(&self) -> Vec<ListedConnection> {
        let mut numbered: Vec<_> = self.numbers.iter().map(|(ends, number)| (*number, *ends)).collect();
        numbered.sort_unstable();
        let listed = |(number, (source, destination))| ends(&self.picture, 0, source, destination, number);
        let plain = |Ends(_, a, b, c, d, e, f, g, h, i)| (a, b, c, d, e, f, g, h, i);
        numbered.into_iter().filter_map(listed).map(plain).collect()
    }

    /// The full names of all ports, by id.
    pub(super) fn port_names(&self) -> Vec<String> {
        self.picture.ports.keys().filter_map(|id| self.port_name(u64::from(*id))).collect()
    }

    /// The full name of a port.
    pub(super) fn port_name(&self, id: u64) -> Option<String> {
        let port = self.picture.ports.get(&u32::try_from(id).ok()?)?;
        Some(proto::names::full(&name_of(&self.picture, port.client), &port.name))
    }

    /// The ports of the connection of that number.
    pub(super) fn connection(&self, number: u64) -> Option<(u64, u64)> {
        let found = self.numbers.iter().find(|(_, known)| **known == number);
        found.map(|((source, destination), _)| (u64::from(*source), u64::from(*destination)))
    }

    /// The process of a client.
    pub(super) fn process(&self, client: u64) -> Option<u32> {
        Some(self.picture.clients.get(&u32::try_from(client).ok()?)?.1)
    }
}

fn is_same_client(old: &Picture, new: &Picture, id: u32) -> bool {
    old.clients.contains_key(&id) && old.clients.get(&id) == new.clients.get(&id)
}

fn name_of(picture: &Picture, client: u32) -> String {
    picture.clients.get(&client).map(|(name, _)| name.clone()).unwrap_or_default()
}

fn ends(picture: &Picture, version: u64, source: u32, destination: u32, number: u64) -> Option<Ends> {
    let end = |id: u32| {
        let port = picture.ports.get(&id)?;
        Some((u64::from(port.client), name_of(picture, port.client), u64::from(id), port.name.clone()))
    };
    let ((a, b, c, d), (e, f, g, h)) = (end(source)?, end(destination)?);
    Some(Ends(version, a, b, c, d, e, f, g, h, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(clients: &[(u32, &str)], ports: &[(u32, u32, &str)], connections: &[(u32, u32)]) -> Picture {
        let port = |(id, client, name): &(u32, u32, &str)| {
            (*id, Port { client: *client, name: (*name).into(), flags: 1, kind: 0 })
        };
        Picture {
            clients: clients.iter().map(|(id, name)| (*id, ((*name).into(), 7))).collect(),
            ports: ports.iter().map(port).collect(),
            connections: connections.to_vec(),
        }
    }

    const BOTH: &[(u32, &str)] = &[(1, "a"), (2, "b")];

    #[test]
    fn each_change_is_told_once_with_a_version_of_its_own() {
        let mut graph = Graph::default();
        let first = picture(BOTH, &[(1, 1, "out"), (2, 2, "in")], &[(1, 2)]);
        let told = graph.become_like(first.clone());
        let connected = Ends(6, 1, "a".into(), 1, "out".into(), 2, "b".into(), 2, "in".into(), 1);
        assert_eq!(
            told,
            [
                Told::ClientAppeared((2, 1, "a".into())),
                Told::ClientAppeared((3, 2, "b".into())),
                Told::PortAppeared((4, 1, "a".into(), 1, "out".into(), 1, 0)),
                Told::PortAppeared((5, 2, "b".into(), 2, "in".into(), 1, 0)),
                Told::PortsConnected(connected),
                Told::GraphChanged(6),
            ]
        );
        assert_eq!(graph.become_like(first), []);
        let told = graph.become_like(picture(BOTH, &[(1, 1, "left"), (2, 2, "in")], &[(1, 2)]));
        let renamed = Told::PortRenamed((7, 1, 1, "a".into(), "out".into(), "left".into()));
        assert_eq!(told, [renamed, Told::GraphChanged(7)], "and it is connected still");
        let told = graph.become_like(picture(&[(1, "a")], &[(1, 1, "left")], &[]));
        let gone = Ends(8, 1, "a".into(), 1, "left".into(), 2, "b".into(), 2, "in".into(), 1);
        assert_eq!(
            told,
            [
                Told::PortsDisconnected(gone),
                Told::PortDisappeared((9, 2, "b".into(), 2, "in".into())),
                Told::ClientDisappeared((10, 2, "b".into())),
                Told::GraphChanged(10),
            ]
        );
    }

    #[test]
    fn who_comes_in_the_place_of_another_is_another() {
        let mut graph = Graph::default();
        graph.become_like(picture(BOTH, &[(1, 1, "out"), (2, 2, "in")], &[(1, 2)]));
        let told =
            graph.become_like(picture(&[(1, "x"), (2, "b")], &[(1, 1, "out"), (2, 2, "in")], &[(1, 2)]));
        let kinds: Vec<&str> = told
            .iter()
            .map(|told| match told {
                Told::PortsDisconnected(_) => "disconnected",
                Told::PortDisappeared(_) => "port went",
                Told::ClientDisappeared(_) => "client went",
                Told::ClientAppeared(_) => "client came",
                Told::PortAppeared(_) => "port came",
                Told::PortsConnected(_) => "connected",
                Told::GraphChanged(_) => "changed",
                Told::PortRenamed(_) => "renamed",
            })
            .collect();
        assert_eq!(
            kinds,
            ["disconnected", "port went", "client went", "client came", "port came", "connected", "changed"]
        );
        assert_eq!(graph.connection(1), None);
        assert_eq!(graph.connection(2), Some((1, 2)));
    }
}
