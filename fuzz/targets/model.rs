//! Any sequence of operations of any programs on the graph: following its changes gives the graph
//! itself.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use engine::{Change, Limits, Model};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use proto::names;
use proto::property::{
    Property, PropertyChange, PropertyPage, PropertyValue, client_uuid, port_uuid,
};
use proto::request::{NewPort, PortType, ReturningConnection, ReturningPort};

const LIMITS: Limits = Limits { clients: 5, ports: 12, connections: 16 };

/// A name that exists with some luck, or anything.
#[derive(Debug, Arbitrary)]
enum Name {
    Known(u8),
    Any(String),
}

#[derive(Debug, Arbitrary)]
enum FullName {
    Known(u8, u8),
    Any(String),
}

/// What a property may be of.
#[derive(Debug, Arbitrary)]
enum Named {
    Client(u8),
    Port(u8),
    Any(u64),
}

impl Named {
    fn uuid(&self) -> u64 {
        match self {
            Self::Client(client) => client_uuid(id(*client, LIMITS.clients)),
            Self::Port(port) => port_uuid(id(*port, LIMITS.ports)),
            Self::Any(uuid) => *uuid,
        }
    }
}

#[derive(Debug, Arbitrary)]
enum Operation {
    Open { name: Name, exact: bool },
    Activate { client: u8, active: bool },
    Close { client: u8 },
    Register { client: u8, name: Name, flags: u8, midi: bool },
    Unregister { asker: u8, port: u8 },
    Connect(FullName, FullName),
    Disconnect(FullName, FullName),
    DisconnectAll { port: u8 },
    Rename { port: u8, name: Name },
    SetAlias { port: u8, alias: FullName },
    UnsetAlias { port: u8, alias: FullName },
    ReturnClient { client: u8, uuid: u64, name: Name },
    ReturnPort { client: u8, port: u8, name: Name, flags: u8, midi: bool, aliases: Vec<FullName> },
    ReturnAge(FullName, FullName, u64),
    ExpectIds { client: u32, port: u32 },
    SetProperty { subject: Named, key: u8, value: u8 },
    RemoveProperty { subject: Named, key: u8 },
    RemoveProperties { subject: Named },
    RemoveAllProperties,
}

impl Name {
    fn text(self, letter: char) -> String {
        match self {
            Self::Known(number) => format!("{letter}{}", number % 4),
            Self::Any(text) => text,
        }
    }
}

impl FullName {
    fn text(self) -> String {
        match self {
            Self::Known(client, port) => format!("c{}:p{}", client % 4, port % 4),
            Self::Any(text) => text,
        }
    }
}

/// One more than there can be, so that some are out of range.
fn id(number: u8, limit: u32) -> u32 {
    u32::from(number) % (limit + 2)
}

/// The graph as a program knows it that only receives changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct FollowedGraph {
    clients: BTreeMap<u32, bool>,
    ports: BTreeMap<u32, String>,
    connections: BTreeSet<(u32, u32)>,
    properties: BTreeSet<(u64, String)>,
}

impl FollowedGraph {
    fn hear(&mut self, model: &Model, change: Change) {
        match change {
            Change::ClientOpened(client) => assert!(self.clients.insert(client, false).is_none()),
            Change::ClientActivity(client) => {
                let active = self.clients.get_mut(&client).expect("an open client");
                *active = !*active;
            }
            Change::ClientClosed { client, .. } => assert!(self.clients.remove(&client).is_some()),
            Change::PortRegistered(port) => {
                let name = model.port(port).expect("registered by this operation").name.clone();
                assert!(self.ports.insert(port, name).is_none());
            }
            Change::PortUnregistered { port, .. } => assert!(self.ports.remove(&port).is_some()),
            Change::PortRenamed { port, old, new } => {
                assert_eq!(self.ports.insert(port, new), Some(old))
            }
            Change::Property { subject, key, change } => self.hear_property(subject, key, change),
            Change::PortMonitors(port) | Change::PortAliases(port) => {
                assert!(self.ports.contains_key(&port))
            }
            Change::Connected { source, destination } => {
                assert!(self.connections.insert((source, destination)));
            }
            Change::Disconnected { source, destination } => {
                assert!(self.connections.remove(&(source, destination)));
            }
        }
    }

    fn hear_property(&mut self, subject: u64, key: String, change: PropertyChange) {
        let before = self.properties.len();
        let known = (subject, key);
        match change {
            PropertyChange::Created => assert!(self.properties.insert(known)),
            PropertyChange::Changed => assert!(self.properties.contains(&known)),
            PropertyChange::Deleted => {
                let is_meant = |(of, key): &(u64, String)| match &known {
                    (0, _) => true,
                    (subject, all) if all.is_empty() => of == subject,
                    (subject, one) => of == subject && key == one,
                };
                self.properties.retain(|property| !is_meant(property));
                assert!(self.properties.len() < before, "nothing is deleted twice");
            }
        }
    }

    fn of(model: &Model) -> Self {
        let ports = || model.clients().flat_map(|client| model.ports_of(client.id));
        let outputs = ports().filter(|port| port.is_output());
        Self {
            clients: model.clients().map(|client| (client.id, client.active)).collect(),
            ports: ports().map(|port| (port.id, port.name.clone())).collect(),
            properties: properties(model),
            connections: outputs
                .flat_map(|port| port.links.iter().map(|link| (port.id, link.other)))
                .collect(),
        }
    }
}

/// All properties, page by page.
fn properties(model: &Model) -> BTreeSet<(u64, String)> {
    let mut page = PropertyPage { subject: None, after: None };
    let mut all = BTreeSet::new();
    loop {
        let (found, more) = model.properties(&page);
        for Property { subject, key, .. } in found {
            page.after = Some((subject, key.clone()));
            assert!(all.insert((subject, key)), "each once");
        }
        if !more {
            return all;
        }
    }
}

/// Whether the model reports that it changed something, or may have.
fn apply(model: &mut Model, operation: Operation) -> bool {
    let result = match operation {
        Operation::Open { name, exact } => model.open_client(&name.text('c'), exact).map(drop),
        Operation::Activate { client, active } => {
            model.set_active(id(client, LIMITS.clients), active);
            Ok(())
        }
        Operation::Close { client } => {
            model.close_client(id(client, LIMITS.clients));
            Ok(())
        }
        Operation::Register { client, name, flags, midi } => {
            let port_type = if midi { PortType::Midi } else { PortType::Audio };
            let new = NewPort {
                name: name.text('p'),
                port_type,
                flags: flags.into(),
                number: 0,
                slot: None,
            };
            model.register_port(id(client, LIMITS.clients), &new).map(drop)
        }
        Operation::Unregister { asker, port } => {
            model.unregister_port(id(asker, LIMITS.clients), id(port, LIMITS.ports))
        }
        Operation::Connect(source, destination) => {
            model.connect(&source.text(), &destination.text()).map(drop)
        }
        Operation::Disconnect(source, destination) => {
            model.disconnect(&source.text(), &destination.text())
        }
        Operation::DisconnectAll { port } => model.disconnect_all(id(port, LIMITS.ports)),
        Operation::Rename { port, name } => {
            model.rename_port(id(port, LIMITS.ports), &name.text('p'))
        }
        Operation::SetAlias { port, alias } => {
            model.set_alias(id(port, LIMITS.ports), &alias.text())
        }
        Operation::UnsetAlias { port, alias } => {
            model.unset_alias(id(port, LIMITS.ports), &alias.text())
        }
        Operation::ReturnClient { client, uuid, name } => {
            model.return_client(id(client, LIMITS.clients), uuid, &name.text('c'))
        }
        Operation::ReturnPort { client, port, name, flags, midi, aliases } => {
            let port_type = if midi { PortType::Midi } else { PortType::Audio };
            let new = NewPort {
                name: name.text('p'),
                port_type,
                flags: flags.into(),
                number: 0,
                slot: None,
            };
            let returning = ReturningPort {
                id: id(port, LIMITS.ports),
                port: new,
                aliases: aliases.into_iter().map(FullName::text).collect(),
                capture_latency: (0, u32::MAX),
                playback_latency: (u32::MAX, 0),
            };
            model.return_port(id(client, LIMITS.clients), &returning)
        }
        Operation::ReturnAge(source, destination, age) => {
            let (source, destination) = (source.text(), destination.text());
            model.return_age(&ReturningConnection { source, destination, age })
        }
        Operation::ExpectIds { client, port } => {
            model.expect_ids(client, port);
            Ok(())
        }
        Operation::SetProperty { subject, key, value } => {
            // Large enough that some do not fit into one page, or into what a client may have.
            let value = PropertyValue {
                text: "x".repeat(usize::from(value) * 190),
                type_name: String::new(),
            };
            model.set_property(Property { subject: subject.uuid(), key: key.to_string(), value })
        }
        Operation::RemoveProperty { subject, key } => {
            model.remove_property(subject.uuid(), &key.to_string())
        }
        Operation::RemoveProperties { subject } => {
            model.remove_properties(subject.uuid());
            Ok(())
        }
        Operation::RemoveAllProperties => {
            model.remove_all_properties();
            Ok(())
        }
    };
    if let Err(error) = &result {
        assert!(!error.to_string().is_empty(), "a refusal says why");
    }
    result.is_ok()
}

fn check(model: &Model) {
    let (ports, connections) = model.counts();
    assert!(ports <= LIMITS.ports && connections <= LIMITS.connections);
    assert!(model.clients().count() <= LIMITS.clients as usize);
    for client in model.clients() {
        assert!(names::check_client(&client.name).is_ok(), "{:?}", client.name);
        for port in model.ports_of(client.id) {
            assert!(names::check_full(&port.name).is_ok(), "{:?}", port.name);
            assert!(port.is_input() != port.is_output());
            assert!(port.aliases.len() <= 2);
            assert_eq!(
                model.find(&port.name).map(|found| found.id),
                Ok(port.id),
                "found by its own name"
            );
            for link in &port.links {
                let other = model.port(link.other).expect("a port at the other end");
                assert!(other.port_type == port.port_type && other.is_output() != port.is_output());
                assert!(client.active, "only active clients have connections");
            }
        }
    }
}

libfuzzer_sys::fuzz_target!(|operations: Vec<Operation>| {
    let mut model = Model::new(LIMITS);
    let mut heard = FollowedGraph::default();
    for operation in operations {
        let said = format!("{operation:?}");
        let done = apply(&mut model, operation);
        let changes = model.take_changes();
        assert!(done || changes.is_empty(), "{said} was refused and changed {changes:?}");
        for change in changes {
            heard.hear(&model, change);
        }
        assert_eq!(heard, FollowedGraph::of(&model), "after {said}");
        check(&model);
    }
});
