//! What clients and ports had that are not here now: by their names it is kept, and theirs again when they come back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proto::property::{Property, PropertyValue, port_uuid};
use state::{Connection, Owner, Place, State};

use super::{ALIASES, Model};

/// Something that was had, by names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Had {
    Connection(Connection),
    Alias { port: String, alias: String },
    Property(state::Property),
}

/// All that is kept. There is room for so many bytes; what was had first goes first.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Whether what goes is kept; otherwise only what was told is.
    keeps: bool,
    by_age: BTreeMap<u64, Had>,
    /// Names of clients and ports, and what is kept for them: keys of `by_age`.
    by_name: HashMap<String, BTreeSet<u64>>,
    next: u64,
    bytes: usize,
    /// Connections whose both ends are here again.
    due: Vec<Connection>,
}

/// Programs that never come back under their names leave no more than this.
const LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// What an entry takes beside its texts, about.
const OVERHEAD_BYTES: usize = 128;

impl Had {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Connection(Connection { source, destination }) => vec![source, destination],
            Self::Alias { port, .. } => vec![port],
            Self::Property(state::Property { owner: Owner::Client(name) | Owner::Port(name), .. }) => {
                vec![name]
            }
        }
    }

    fn bytes(&self) -> usize {
        let more = match self {
            Self::Connection(_) => 0,
            Self::Alias { alias, .. } => alias.len(),
            Self::Property(property) => property.key.len() + property.value.len() + property.type_name.len(),
        };
        OVERHEAD_BYTES + more + self.names().iter().map(|name| name.len()).sum::<usize>()
    }

    /// Whether only one of both can be had.
    fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Property(one), Self::Property(other)) => one.owner == other.owner && one.key == other.key,
            _ => self == other,
        }
    }
}

impl Kept {
    fn put(&mut self, had: Had) {
        let before = had.names().first().map_or_else(Vec::new, |name| self.of(name));
        for (age, _) in before.into_iter().filter(|(_, other)| had.replaces(other)) {
            self.take(age);
        }
        self.bytes += had.bytes();
        for name in had.names() {
            self.by_name.entry(name.to_owned()).or_default().insert(self.next);
        }
        self.by_age.insert(self.next, had);
        self.next += 1;
        while self.bytes > LIMIT_BYTES
            && let Some(oldest) = self.by_age.keys().next().copied()
        {
            self.take(oldest);
        }
    }

    fn take(&mut self, age: u64) {
        let Some(had) = self.by_age.remove(&age) else { return };
        self.bytes -= had.bytes();
        for name in had.names() {
            if let Some(ages) = self.by_name.get_mut(name) {
                ages.remove(&age);
                if ages.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
    }

    /// What is kept for a name, oldest first.
    fn of(&self, name: &str) -> Vec<(u64, Had)> {
        let ages = self.by_name.get(name).into_iter().flatten();
        ages.filter_map(|age| Some((*age, self.by_age.get(age)?.clone()))).collect()
    }

    fn connections_of(&self, name: &str) -> Vec<(u64, Connection)> {
        let connection = |(age, had)| match had {
            Had::Connection(connection) => Some((age, connection)),
            _ => None,
        };
        self.of(name).into_iter().filter_map(connection).collect()
    }

    /// The connection is there, or is not to be.
    pub(super) fn drop_connection(&mut self, source: &str, destination: &str) {
        for (age, connection) in self.connections_of(source) {
            if connection.destination == destination {
                self.take(age);
            }
        }
    }

    /// All properties were removed, of everything.
    pub(super) fn drop_properties(&mut self) {
        let is_property = |had: &Had| matches!(had, Had::Property(_));
        let ages: Vec<u64> =
            self.by_age.iter().filter(|(_, had)| is_property(had)).map(|(age, _)| *age).collect();
        ages.into_iter().for_each(|age| self.take(age));
    }
}

/// Going: what is had is kept.
impl Model {
    /// Keeps what clients and ports had from now on.
    pub fn keep_what_goes(&mut self) {
        self.kept.keeps = true;
    }

    /// A connection goes with one of its ports, not by somebody's wish.
    pub(super) fn keep_connection(&mut self, source: u32, destination: u32) {
        let name = |port: u32| self.ports.get(&port).map(|port| port.name.clone());
        if let (true, Some(source), Some(destination)) = (self.kept.keeps, name(source), name(destination)) {
            self.kept.put(Had::Connection(Connection { source, destination }));
        }
    }

    /// A port goes, with its aliases and properties.
    pub(super) fn keep_port(&mut self, id: u32) {
        let Some(port) = self.ports.get(&id).filter(|_| self.kept.keeps) else { return };
        let (name, aliases) = (port.name.clone(), port.aliases.clone());
        for alias in aliases {
            self.kept.put(Had::Alias { port: name.clone(), alias });
        }
        self.keep_properties(port_uuid(id), &Owner::Port(name));
    }

    /// A client goes, with its properties; its ports have gone before.
    pub(super) fn keep_client(&mut self, id: u32) {
        if let Some(client) = self.clients.get(&id).filter(|_| self.kept.keeps) {
            let (uuid, owner) = (client.uuid, Owner::Client(client.name.clone()));
            self.keep_properties(uuid, &owner);
        }
    }

    fn keep_properties(&mut self, subject: u64, owner: &Owner) {
        for property in self.properties_of(subject, owner) {
            self.kept.put(Had::Property(property));
        }
    }

    fn properties_of(&self, subject: u64, owner: &Owner) -> Vec<state::Property> {
        let of = |(key, value): (&String, &PropertyValue)| state::Property {
            owner: owner.clone(),
            key: key.clone(),
            value: value.text.clone(),
            type_name: value.type_name.clone(),
        };
        self.metadata.of(subject).map(|((_, key), value)| of((key, value))).collect()
    }
}

/// Coming back.
impl Model {
    /// What clients and ports have by this state is theirs: now, if they are here, and when they come.
    pub fn expect(&mut self, state: &State) {
        for connection in &state.connections {
            self.kept.put(Had::Connection(connection.clone()));
        }
        for (port, aliases) in &state.aliases {
            for alias in aliases {
                self.kept.put(Had::Alias { port: port.clone(), alias: alias.clone() });
            }
        }
        for property in &state.properties {
            self.kept.put(Had::Property(property.clone()));
        }
        let clients: Vec<(u32, bool)> =
            self.clients.values().map(|client| (client.id, client.active)).collect();
        for (client, active) in clients {
            self.client_came(client);
            for port in self.clients.get(&client).map_or_else(Vec::new, |client| client.ports.clone()) {
                self.port_came(port);
                if active {
                    self.port_became_connectable(port);
                }
            }
        }
    }

    /// Whoever has not come by now is not waited for any more.
    pub fn expect_nobody(&mut self) {
        self.kept = Kept { keeps: self.kept.keeps, ..Kept::default() };
    }

    /// The connections whose both ends have come back, for once.
    pub fn take_due(&mut self) -> Vec<Connection> {
        let mut due = std::mem::take(&mut self.kept.due);
        due.retain(|due| self.kept.connections_of(&due.source).iter().any(|(_, kept)| kept == due));
        due
    }

    /// The client knows better what is between it and the clients that are here.
    pub fn trust_connections_of(&mut self, client: u32) {
        let ports = self.clients.get(&client).map_or_else(Vec::new, |client| client.ports.clone());
        for port in ports {
            let Some(name) = self.ports.get(&port).map(|port| port.name.clone()) else { continue };
            for (age, connection) in self.kept.connections_of(&name) {
                if self.is_connectable(&connection.source) && self.is_connectable(&connection.destination) {
                    self.kept.take(age);
                }
            }
        }
    }

    fn is_connectable(&self, port: &str) -> bool {
        let owner = self.port_named(port).and_then(|port| self.clients.get(&port.owner));
        owner.is_some_and(|owner| owner.active)
    }

    pub(super) fn client_came(&mut self, id: u32) {
        if let Some(client) = self.clients.get(&id) {
            let (uuid, name) = (client.uuid, client.name.clone());
            self.give_properties(uuid, &name, &Owner::Client(name.clone()));
        }
    }

    pub(super) fn port_came(&mut self, id: u32) {
        if let Some(port) = self.ports.get(&id) {
            let name = port.name.clone();
            self.give_properties(port_uuid(id), &name, &Owner::Port(name.clone()));
        }
    }

    fn give_properties(&mut self, subject: u64, name: &str, owner: &Owner) {
        for (age, had) in self.kept.of(name) {
            let Had::Property(had) = had else { continue };
            if had.owner != *owner {
                continue;
            }
            self.kept.take(age);
            if self.property(subject, &had.key).is_err() {
                let value = PropertyValue { text: had.value, type_name: had.type_name };
                // Refused only if the program has as many of its own as it may have.
                let _ = self.set_property(Property { subject, key: had.key, value });
            }
        }
    }

    /// Its program has registered the port and is active: it has given the aliases that it gives.
    pub(super) fn port_became_connectable(&mut self, id: u32) {
        let Some(name) = self.ports.get(&id).map(|port| port.name.clone()) else { return };
        for (age, had) in self.kept.of(&name) {
            match had {
                Had::Alias { alias, .. } => {
                    self.kept.take(age);
                    // Refused if the program has given it two others.
                    let _ = self.set_alias(id, &alias);
                }
                Had::Connection(connection) => {
                    if self.is_connectable(&connection.source) && self.is_connectable(&connection.destination)
                    {
                        self.kept.due.push(connection);
                    }
                }
                Had::Property(_) => {}
            }
        }
    }

    /// A port has another name: what is kept for the old one is for it.
    pub(super) fn port_was_renamed(&mut self, id: u32, old: &str, new: &str) {
        for (age, connection) in self.kept.connections_of(old) {
            self.kept.take(age);
            let renamed = |name: String| if name == old { new.to_owned() } else { name };
            let Connection { source, destination } = connection;
            let connection = Connection { source: renamed(source), destination: renamed(destination) };
            self.kept.put(Had::Connection(connection));
        }
        self.port_came(id);
        if self.is_connectable(new) {
            self.port_became_connectable(id);
        }
    }
}

/// Being written down.
impl Model {
    /// What there is, and what is kept of what was, with the rest of a server's state.
    pub fn state(&self, quantum: Option<u32>, transport: Option<Place>) -> State {
        let mut state = State { quantum, transport, ..State::default() };
        let mut connections = Vec::new();
        for port in self.ports.values() {
            if !port.aliases.is_empty() {
                state.aliases.insert(port.name.clone(), port.aliases.clone());
            }
            let owner = Owner::Port(port.name.clone());
            state.properties.extend(self.properties_of(port_uuid(port.id), &owner));
            for link in port.links.iter().filter(|_| port.is_output()) {
                if let Some(other) = self.ports.get(&link.other) {
                    let (source, destination) = (port.name.clone(), other.name.clone());
                    connections.push((link.age, Connection { source, destination }));
                }
            }
        }
        connections.sort_by_key(|(age, _)| *age);
        state.connections.extend(connections.into_iter().map(|(_, connection)| connection));
        for client in self.clients.values() {
            state.properties.extend(self.properties_of(client.uuid, &Owner::Client(client.name.clone())));
        }
        for had in self.kept.by_age.values() {
            match had.clone() {
                Had::Connection(connection) => state.connections.push(connection),
                Had::Alias { port, alias } => {
                    let aliases = state.aliases.entry(port).or_default();
                    if aliases.len() < ALIASES && !aliases.contains(&alias) {
                        aliases.push(alias);
                    }
                }
                Had::Property(property) => state.properties.push(property),
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use proto::property::client_uuid;
    use proto::request::{NewPort, PortType};

    use super::super::Limits;
    use super::*;

    fn model() -> Model {
        let mut model = Model::new(Limits { clients: 8, ports: 16, connections: 16 });
        model.keep_what_goes();
        open(&mut model, "system", &[("in", 1)]);
        model
    }

    /// A client with these ports (name, flags) that is active.
    fn open(model: &mut Model, name: &str, ports: &[(&str, u32)]) -> u32 {
        let client = model.open_client(name, true).unwrap();
        for (name, flags) in ports {
            let port_type = PortType::Audio;
            let new = NewPort { name: (*name).into(), port_type, flags: *flags, number: 0, slot: None };
            model.register_port(client, &new).unwrap();
        }
        model.set_active(client, true);
        client
    }

    fn connection(source: &str, destination: &str) -> Connection {
        Connection { source: source.into(), destination: destination.into() }
    }

    fn property(subject: u64, key: &str, text: &str) -> Property {
        let value = PropertyValue { text: text.into(), type_name: "t".into() };
        Property { subject, key: key.into(), value }
    }

    /// A synth that is connected, has an alias and properties, and goes.
    fn with_a_synth_that_went() -> (Model, State) {
        let mut model = model();
        let synth = open(&mut model, "synth", &[("out", 2), ("other", 2)]);
        model.connect("synth:out", "system:in").unwrap();
        model.connect("synth:other", "system:in").unwrap();
        let out = model.port_named("synth:out").unwrap().id;
        model.set_alias(out, "main").unwrap();
        model.set_property(property(client_uuid(synth), "k", "client's")).unwrap();
        model.set_property(property(port_uuid(out), "k", "port's")).unwrap();
        let state = model.state(None, None);
        model.close_client(synth);
        (model, state)
    }

    #[test]
    fn a_client_that_comes_back_under_its_name_has_what_it_had() {
        let (mut model, before) = with_a_synth_that_went();
        assert_eq!(model.state(None, None), before, "while it is gone");
        let synth = open(&mut model, "synth", &[("out", 2), ("other", 2)]);
        let due = model.take_due();
        assert_eq!(due, [connection("synth:out", "system:in"), connection("synth:other", "system:in")]);
        for Connection { source, destination } in due {
            model.connect(&source, &destination).unwrap();
        }
        assert_eq!(model.state(None, None), before);
        assert_eq!(model.property(client_uuid(synth), "k").unwrap().text, "client's");
        assert_eq!(model.kept.by_age.len() + model.kept.by_name.len() + model.kept.bytes, 0, "all is given");
    }

    #[test]
    fn a_model_that_is_told_of_a_state_gives_it_to_whoever_comes() {
        let (_, before) = with_a_synth_that_went();
        let mut model = model();
        model.expect(&before);
        assert_eq!(model.state(None, None), before);
        open(&mut model, "another", &[("out", 2)]);
        assert_eq!(model.take_due(), []);
        open(&mut model, "synth", &[("out", 2)]);
        assert_eq!(model.take_due(), [connection("synth:out", "system:in")], "the port that is there");
        assert_eq!(model.port_named("synth:out").unwrap().aliases, ["main"]);
        model.expect_nobody();
        open(&mut model, "x", &[]);
        assert_eq!(model.state(None, None).connections, []);
    }

    #[test]
    fn what_somebody_has_undone_is_not_kept() {
        let (mut model, _) = with_a_synth_that_went();
        let synth = open(&mut model, "synth", &[("out", 2), ("other", 2)]);
        for Connection { source, destination } in model.take_due() {
            model.connect(&source, &destination).unwrap();
        }
        let out = model.port_named("synth:out").unwrap().id;
        model.disconnect("synth:out", "system:in").unwrap();
        model.disconnect_all(model.port_named("synth:other").unwrap().id).unwrap();
        model.unset_alias(out, "main").unwrap();
        model.remove_property(port_uuid(out), "k").unwrap();
        model.remove_properties(client_uuid(synth));
        model.close_client(synth);
        assert_eq!(model.state(None, None), State::default());
    }

    #[test]
    fn a_program_that_gives_its_port_another_name_finds_what_was_kept_for_that() {
        let (mut model, _) = with_a_synth_that_went();
        open(&mut model, "synth", &[("new", 2)]);
        let port = model.port_named("synth:new").unwrap().id;
        model.rename_port(port, "out").unwrap();
        assert_eq!(model.take_due(), [connection("synth:out", "system:in")]);
        assert_eq!(model.port(port).unwrap().aliases, ["main"]);
        assert_eq!(model.property(port_uuid(port), "k").unwrap().text, "port's");
    }

    #[test]
    fn a_connection_that_waits_for_its_other_end_follows_a_new_name() {
        let (mut model, _) = with_a_synth_that_went();
        let port = model.port_named("system:in").unwrap().id;
        model.rename_port(port, "first").unwrap();
        open(&mut model, "synth", &[("out", 2)]);
        assert_eq!(model.take_due(), [connection("synth:out", "system:first")]);
    }

    #[test]
    fn a_client_that_returns_to_a_new_server_knows_better_what_is_between_it_and_who_is_there() {
        let (mut model, _) = with_a_synth_that_went();
        let synth = open(&mut model, "synth", &[("out", 2)]);
        model.take_due();
        model.trust_connections_of(synth);
        assert_eq!(model.state(None, None).connections, [connection("synth:other", "system:in")]);
    }

    #[test]
    fn what_is_kept_for_those_that_never_come_back_has_a_limit_and_the_newest_stay() {
        let mut model = model();
        let large = "x".repeat(40_000);
        for number in 0..200 {
            let client = open(&mut model, &format!("client-{number}"), &[]);
            model.set_property(property(client_uuid(client), "k", &large)).unwrap();
            model.close_client(client);
        }
        let kept = model.state(None, None).properties;
        assert!((90..110).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept.last().unwrap().owner, Owner::Client("client-199".into()));
        assert!(model.kept.bytes <= LIMIT_BYTES);
    }

    #[test]
    fn a_server_that_keeps_no_state_keeps_nothing_of_what_goes() {
        let mut model = Model::new(Limits { clients: 8, ports: 16, connections: 16 });
        let client = open(&mut model, "synth", &[("out", 2), ("in", 1)]);
        model.connect("synth:out", "synth:in").unwrap();
        model.close_client(client);
        assert_eq!(model.state(None, None), State::default());
    }
}
