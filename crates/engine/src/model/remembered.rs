//! Connections, aliases and properties of clients and ports that are gone, remembered by name and
//! restored when they come back.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proto::property::{Property, PropertyValue, port_uuid};
use state::{Connection, Owner, State, TransportPosition};

use super::{ALIASES, Model};

/// One remembered item, keyed by name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RememberedItem {
    Connection(Connection),
    Alias { port: String, alias: String },
    Property(state::Property),
}

/// Remembered items, bounded by [`LIMIT_BYTES`], and for each name by [`MOST_OF_A_NAME`]; the
/// oldest is dropped first.
#[derive(Debug, Default)]
pub(super) struct RememberedGraph {
    /// Everything that is removed is remembered; otherwise only what [`Model::expect`] added.
    keeps: bool,
    by_age: BTreeMap<u64, RememberedItem>,
    /// Names of clients and ports, and the items remembered for them: keys of `by_age`.
    by_name: HashMap<String, BTreeSet<u64>>,
    next: u64,
    bytes: usize,
    /// Connections whose two ports have come back.
    due: Vec<Connection>,
}

/// The most memory that programs leave which never come back under their names.
const LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// The most items of a client or a port. All of them are looked at when one is added or dropped,
/// and when the client or the port comes back.
const MOST_OF_A_NAME: usize = 1024;
/// What an item takes in addition to its texts, approximately.
const OVERHEAD_BYTES: usize = 128;

impl RememberedItem {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Connection(Connection { source, destination }) => vec![source, destination],
            Self::Alias { port, .. } => vec![port],
            Self::Property(state::Property {
                owner: Owner::Client(name) | Owner::Port(name),
                ..
            }) => {
                vec![name]
            }
        }
    }

    fn bytes(&self) -> usize {
        let more = match self {
            Self::Connection(_) => 0,
            Self::Alias { alias, .. } => alias.len(),
            Self::Property(property) => {
                property.key.len() + property.value.len() + property.type_name.len()
            }
        };
        OVERHEAD_BYTES + more + self.names().iter().map(|name| name.len()).sum::<usize>()
    }

    /// Whether only one of the two can exist.
    fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Property(one), Self::Property(other)) => {
                one.owner == other.owner && one.key == other.key
            }
            _ => self == other,
        }
    }
}

impl RememberedGraph {
    fn put(&mut self, had: RememberedItem) {
        let before = had.names().first().and_then(|name| self.by_name.get(*name));
        let replaced = before.into_iter().flatten().copied().find(|age| {
            let other = self.by_age.get(age);
            other.is_some_and(|other| had.replaces(other))
        });
        replaced.into_iter().for_each(|age| self.take(age));
        for name in had.names() {
            let of_name = self.by_name.get(name);
            // MUTATION: remembered.any_number_of_a_name
            let is_full = of_name.is_some_and(|ages| ages.len() >= MOST_OF_A_NAME);
            if let Some(oldest) = of_name.and_then(BTreeSet::first).copied().filter(|_| is_full) {
                self.take(oldest);
            }
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

    /// The items remembered for a name, oldest first.
    fn of(&self, name: &str) -> Vec<(u64, RememberedItem)> {
        let ages = self.by_name.get(name).into_iter().flatten();
        ages.filter_map(|age| Some((*age, self.by_age.get(age)?.clone()))).collect()
    }

    fn connections_of(&self, name: &str) -> Vec<(u64, Connection)> {
        let connection = |(age, had)| match had {
            RememberedItem::Connection(connection) => Some((age, connection)),
            _ => None,
        };
        self.of(name).into_iter().filter_map(connection).collect()
    }

    /// Forgets a connection that has been made, or is no longer wanted.
    pub(super) fn drop_connection(&mut self, source: &str, destination: &str) {
        for (age, connection) in self.connections_of(source) {
            if connection.destination == destination {
                self.take(age);
            }
        }
    }

    /// Returns whether a connection of this port is due.
    pub(super) fn has_due(&self, port: &str) -> bool {
        self.due.iter().any(|due| due.source == port || due.destination == port)
    }

    /// Forgets all properties of all subjects.
    pub(super) fn drop_properties(&mut self) {
        let is_property = |had: &RememberedItem| matches!(had, RememberedItem::Property(_));
        let ages: Vec<u64> =
            self.by_age.iter().filter(|(_, had)| is_property(had)).map(|(age, _)| *age).collect();
        ages.into_iter().for_each(|age| self.take(age));
    }
}

/// Clients and ports that go.
impl Model {
    /// Remembers, from now on, what clients and ports had when they go.
    pub fn keep_what_goes(&mut self) {
        self.remembered.keeps = true;
    }

    /// Remembers a connection that goes with one of its ports, not on request.
    pub(super) fn keep_connection(&mut self, source: u32, destination: u32) {
        let name = |port: u32| self.ports.get(&port).map(|port| port.name.clone());
        if let (true, Some(source), Some(destination)) =
            (self.remembered.keeps, name(source), name(destination))
        {
            self.remembered.put(RememberedItem::Connection(Connection { source, destination }));
        }
    }

    /// Remembers the aliases and properties of a port that goes.
    pub(super) fn keep_port(&mut self, id: u32) {
        let Some(port) = self.ports.get(&id).filter(|_| self.remembered.keeps) else { return };
        let (name, aliases) = (port.name.clone(), port.aliases.clone());
        for alias in aliases {
            self.remembered.put(RememberedItem::Alias { port: name.clone(), alias });
        }
        self.keep_properties(port_uuid(id), &Owner::Port(name));
    }

    /// Remembers the properties of a client that goes; its ports have gone before.
    pub(super) fn keep_client(&mut self, id: u32) {
        if let Some(client) = self.clients.get(&id).filter(|_| self.remembered.keeps) {
            let (uuid, owner) = (client.uuid, Owner::Client(client.name.clone()));
            self.keep_properties(uuid, &owner);
        }
    }

    fn keep_properties(&mut self, subject: u64, owner: &Owner) {
        for property in self.properties_of(subject, owner) {
            self.remembered.put(RememberedItem::Property(property));
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

/// Clients and ports that come back.
impl Model {
    /// Gives clients and ports what they have in this state: at once if they are here, otherwise
    /// when they come.
    pub fn expect(&mut self, state: &State) {
        for connection in &state.connections {
            self.remembered.put(RememberedItem::Connection(connection.clone()));
        }
        for (port, aliases) in &state.aliases {
            for alias in aliases {
                self.remembered
                    .put(RememberedItem::Alias { port: port.clone(), alias: alias.clone() });
            }
        }
        for property in &state.properties {
            self.remembered.put(RememberedItem::Property(property.clone()));
        }
        let clients: Vec<(u32, bool)> =
            self.clients.values().map(|client| (client.id, client.active)).collect();
        for (client, active) in clients {
            self.client_came(client);
            for port in
                self.clients.get(&client).map_or_else(Vec::new, |client| client.ports.clone())
            {
                self.port_came(port);
                if active {
                    self.port_became_connectable(port);
                }
            }
        }
    }

    /// Forgets what is remembered for clients that have not come by now.
    pub fn stop_expecting(&mut self) {
        self.remembered =
            RememberedGraph { keeps: self.remembered.keeps, ..RememberedGraph::default() };
    }

    /// Takes the connections whose two ports have come back.
    pub fn take_due(&mut self) -> Vec<Connection> {
        let mut due = std::mem::take(&mut self.remembered.due);
        due.retain(|due| {
            self.remembered.connections_of(&due.source).iter().any(|(_, kept)| kept == due)
        });
        due
    }

    /// Forgets connections between this client and those that are here: the client states them
    /// itself.
    pub fn trust_connections_of(&mut self, client: u32) {
        let ports = self.clients.get(&client).map_or_else(Vec::new, |client| client.ports.clone());
        for port in ports {
            let Some(name) = self.ports.get(&port).map(|port| port.name.clone()) else { continue };
            for (age, connection) in self.remembered.connections_of(&name) {
                if self.is_connectable(&connection.source)
                    && self.is_connectable(&connection.destination)
                {
                    self.remembered.take(age);
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
        for (age, had) in self.remembered.of(name) {
            let RememberedItem::Property(had) = had else { continue };
            if had.owner != *owner {
                continue;
            }
            self.remembered.take(age);
            if self.property(subject, &had.key).is_err() {
                let value = PropertyValue { text: had.value, type_name: had.type_name };
                // Refused only if the program has used up its quota.
                let _ = self.set_property(Property { subject, key: had.key, value });
            }
        }
    }

    /// Restores the aliases of a port whose client has become active: by now the program has set
    /// its own.
    pub(super) fn port_became_connectable(&mut self, id: u32) {
        let Some(name) = self.ports.get(&id).map(|port| port.name.clone()) else { return };
        for (age, had) in self.remembered.of(&name) {
            match had {
                RememberedItem::Alias { alias, .. } => {
                    self.remembered.take(age);
                    // Refused if the program has set two others.
                    let _ = self.set_alias(id, &alias);
                }
                RememberedItem::Connection(connection) => {
                    if self.is_connectable(&connection.source)
                        && self.is_connectable(&connection.destination)
                    {
                        self.remembered.due.push(connection);
                    }
                }
                RememberedItem::Property(_) => {}
            }
        }
    }

    /// Moves what is remembered for a port's old name to its new one.
    pub(super) fn port_was_renamed(&mut self, id: u32, old: &str, new: &str) {
        for (age, connection) in self.remembered.connections_of(old) {
            self.remembered.take(age);
            let renamed = |name: String| if name == old { new.to_owned() } else { name };
            let Connection { source, destination } = connection;
            let connection =
                Connection { source: renamed(source), destination: renamed(destination) };
            self.remembered.put(RememberedItem::Connection(connection));
        }
        self.port_came(id);
        if self.is_connectable(new) {
            self.port_became_connectable(id);
        }
    }
}

/// The state file.
impl Model {
    /// Returns what exists and what is remembered, with the rest of a server's state.
    pub fn state(&self, quantum: Option<u32>, transport: Option<TransportPosition>) -> State {
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
            state
                .properties
                .extend(self.properties_of(client.uuid, &Owner::Client(client.name.clone())));
        }
        for had in self.remembered.by_age.values() {
            match had.clone() {
                RememberedItem::Connection(connection) => state.connections.push(connection),
                RememberedItem::Alias { port, alias } => {
                    let aliases = state.aliases.entry(port).or_default();
                    if aliases.len() < ALIASES && !aliases.contains(&alias) {
                        aliases.push(alias);
                    }
                }
                RememberedItem::Property(property) => state.properties.push(property),
            }
        }
        state
    }
}
