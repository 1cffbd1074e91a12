//! The graph: clients, ports, connections and devices. Pure: no process, no memory, no socket.
//!
//! Every operation either succeeds as a whole and notes its [`Change`]s, or is refused and does
//! nothing.

mod change;
mod channels;
mod connections;
mod devices;
mod ids;
mod metadata;
mod monitoring;
mod names;
mod port;
mod remembered;
mod reservations;
mod returning;
mod stream_clients;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proto::names as name_rules;
use proto::port_flags;
use proto::request::{NewPort, RequestError};

pub use change::Change;
use devices::Device;
pub use devices::PortLatency;
use ids::Ids;
use metadata::Metadata;
pub use port::{Link, Port};
use remembered::RememberedGraph;

/// Aliases that a port can have.
const ALIASES: usize = 2;

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its id.
    pub id: u32,
    /// Its uuid: made from its id, unless a session assigned one.
    pub uuid: u64,
    /// Its name.
    pub name: String,
    /// Its ports can be connected.
    pub active: bool,
    /// Ids of its ports, in order of registration.
    pub ports: Vec<u32>,
}

/// The largest number of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Clients at once.
    pub clients: u32,
    /// Ports at once.
    pub ports: u32,
    /// Connections at once.
    pub connections: u32,
}

/// The whole graph.
#[derive(Debug)]
pub struct Model {
    limits: Limits,
    clients: BTreeMap<u32, Client>,
    ports: BTreeMap<u32, Port>,
    /// The clients that are devices.
    devices: BTreeMap<u32, Device>,
    /// The device that drives the cycles.
    driver: Option<u32>,
    /// The clients that are programs with streams.
    stream_clients: BTreeSet<u32>,
    client_names: HashMap<String, u32>,
    port_names: HashMap<String, u32>,
    client_ids: Ids,
    port_ids: Ids,
    connections: u32,
    next_age: u64,
    metadata: Metadata,
    /// Reserved names, by the uuid that they are reserved for.
    reserved: BTreeMap<u64, String>,
    remembered: RememberedGraph,
    changes: Vec<Change>,
}

impl Model {
    /// An empty graph.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            clients: BTreeMap::new(),
            ports: BTreeMap::new(),
            devices: BTreeMap::new(),
            driver: None,
            stream_clients: BTreeSet::new(),
            client_names: HashMap::new(),
            port_names: HashMap::new(),
            client_ids: Ids::new(limits.clients),
            port_ids: Ids::new(limits.ports),
            connections: 0,
            next_age: 0,
            metadata: Metadata::default(),
            reserved: BTreeMap::new(),
            remembered: RememberedGraph::default(),
            changes: Vec::new(),
        }
    }

    /// Takes the changes since the last call, oldest first.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// The clients, by id.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.values()
    }

    /// One client.
    pub fn client(&self, id: u32) -> Option<&Client> {
        self.clients.get(&id)
    }

    /// One port.
    pub fn port(&self, id: u32) -> Option<&Port> {
        self.ports.get(&id)
    }

    /// (Ports, connections) in use.
    pub fn counts(&self) -> (u32, u32) {
        (u32::try_from(self.ports.len()).unwrap_or(u32::MAX), self.connections)
    }

    /// The ports of a client.
    pub fn ports_of(&self, client: u32) -> impl Iterator<Item = &Port> {
        let ids = self.clients.get(&client).map_or(&[][..], |client| &client.ports);
        ids.iter().filter_map(|id| self.ports.get(id))
    }

    /// Opens a client under `name`, or under a numbered name if that is taken and `exact` is false.
    pub fn open_client(&mut self, name: &str, exact: bool) -> Result<u32, RequestError> {
        self.open_client_as(name, exact, None)
    }

    /// Like [`open_client`](Self::open_client), with the uuid of a session if no client has it.
    fn open_client_as(
        &mut self,
        name: &str,
        exact: bool,
        uuid: Option<u64>,
    ) -> Result<u32, RequestError> {
        name_rules::check_client(name)?;
        let name = self.free_client_name(name, exact)?;
        let id = self.client_ids.take().ok_or_else(|| RequestError::Full {
            what: "client".into(),
            limit: self.limits.clients,
            advice: "start the server with a larger --port-max".into(),
        })?;
        let uuid =
            uuid.filter(|uuid| self.is_free_uuid(*uuid)).unwrap_or_else(|| self.free_uuid(id));
        self.client_names.insert(name.clone(), id);
        self.clients.insert(id, Client { id, uuid, name, active: false, ports: Vec::new() });
        self.changes.push(Change::ClientOpened(id));
        self.client_came(id);
        Ok(id)
    }

    fn free_client_name(&self, name: &str, exact: bool) -> Result<String, RequestError> {
        if !self.is_taken(name) {
            return Ok(name.into());
        }
        let numbered = (1..=99).map(|number| format!("{name}-{number:02}"));
        let free = |name: &String| name_rules::check_client(name).is_ok() && !self.is_taken(name);
        let found = if exact { None } else { numbered.into_iter().find(free) };
        found.ok_or_else(|| RequestError::NameTaken(name.into()))
    }

    /// Makes a client's ports connectable; or not, which removes their connections.
    pub fn set_active(&mut self, client: u32, active: bool) {
        if self.clients.get(&client).is_none_or(|client| client.active == active) {
            return;
        }
        let ports = self.clients[&client].ports.clone();
        if !active {
            ports.iter().for_each(|port| self.take_connections(*port));
        }
        if let Some(client) = self.clients.get_mut(&client) {
            client.active = active;
        }
        self.changes.push(Change::ClientActivity(client));
        if active {
            ports.into_iter().for_each(|port| self.port_became_connectable(port));
        }
    }

    /// Removes a client with all its ports and connections.
    pub fn close_client(&mut self, id: u32) {
        let announced = self.clients.get(&id).is_some_and(|client| client.active);
        self.set_active(id, false);
        for port in self.clients.get(&id).map_or_else(Vec::new, |client| client.ports.clone()) {
            self.remove_port(port, announced);
        }
        self.forget_client_properties(id);
        if let Some(client) = self.clients.remove(&id) {
            self.client_names.remove(&client.name);
            self.client_ids.give_back(id);
            self.forget_device(id);
            self.stream_clients.remove(&id);
            self.changes.push(Change::ClientClosed { client: id, name: client.name });
        }
    }

    /// Registers a port of `owner`.
    pub fn register_port(&mut self, owner: u32, new: &NewPort) -> Result<u32, RequestError> {
        let name = self.new_port_name(owner, new)?;
        let id = self.port_ids.take().ok_or_else(|| RequestError::Full {
            what: "port".into(),
            limit: self.limits.ports,
            advice: "start the server with a larger --port-max".into(),
        })?;
        self.add_port(id, owner, name, new);
        Ok(id)
    }

    /// The full name of a port that `owner` may register.
    fn new_port_name(&self, owner: u32, new: &NewPort) -> Result<String, RequestError> {
        let client = self
            .clients
            .get(&owner)
            .ok_or_else(|| RequestError::NotAllowed("no such client".into()))?;
        name_rules::check_port(&client.name, &new.name)?;
        let name = name_rules::full(&client.name, &new.name);
        if self.port_names.contains_key(&name) {
            return Err(RequestError::NameTaken(name));
        }
        let direction = new.flags & (port_flags::INPUT | port_flags::OUTPUT);
        if direction != port_flags::INPUT && direction != port_flags::OUTPUT {
            return Err(RequestError::NotAllowed(format!(
                "port '{name}' must be either an input or an output"
            )));
        }
        Ok(name)
    }

    fn add_port(&mut self, id: u32, owner: u32, name: String, new: &NewPort) {
        self.port_names.insert(name.clone(), id);
        let port = Port {
            id,
            owner,
            name,
            aliases: Vec::new(),
            monitors: 0,
            port_type: new.port_type,
            flags: new.flags,
            number: new.number,
            slot: new.slot,
            links: Vec::new(),
            capture_latency: rt::shm::LatencyRange::default(),
            playback_latency: rt::shm::LatencyRange::default(),
        };
        self.ports.insert(id, port);
        let active = self.clients.get_mut(&owner).is_some_and(|client| {
            client.ports.push(id);
            client.active
        });
        self.changes.push(Change::PortRegistered(id));
        self.port_came(id);
        if active {
            self.port_became_connectable(id);
        }
    }

    /// Removes a port that `asker` owns.
    pub fn unregister_port(&mut self, asker: u32, id: u32) -> Result<(), RequestError> {
        self.own_port(asker, id)?;
        let announced = self.clients.get(&asker).is_some_and(|client| client.active);
        self.remove_port(id, announced);
        Ok(())
    }

    fn remove_port(&mut self, id: u32, announced: bool) {
        self.take_connections(id);
        self.forget_port_properties(id);
        let Some(port) = self.ports.remove(&id) else { return };
        self.port_names.remove(&port.name);
        self.port_ids.give_back(id);
        if let Some(client) = self.clients.get_mut(&port.owner) {
            client.ports.retain(|other| *other != id);
        }
        self.changes.push(Change::PortUnregistered { port: id, announced });
    }

    fn own_port(&self, asker: u32, id: u32) -> Result<&Port, RequestError> {
        let port = self.port_by_id(id)?;
        if port.owner == asker { Ok(port) } else { Err(RequestError::NotYours(port.name.clone())) }
    }

    /// A port that was named by its id.
    pub fn port_by_id(&self, id: u32) -> Result<&Port, RequestError> {
        self.ports
            .get(&id)
            .ok_or_else(|| RequestError::UnknownPort { name: format!("#{id}"), nearest: None })
    }

    /// Replaces what follows the first colon of a port's name.
    pub fn rename_port(&mut self, id: u32, short: &str) -> Result<(), RequestError> {
        let port = self.port_by_id(id)?;
        let client = port.name.split_once(':').map_or("", |(client, _)| client).to_owned();
        name_rules::check_port(&client, short)?;
        let (old, new) = (port.name.clone(), name_rules::full(&client, short));
        if old == new {
            return Ok(());
        }
        if self.port_names.contains_key(&new) {
            return Err(RequestError::NameTaken(new));
        }
        self.port_names.remove(&old);
        self.port_names.insert(new.clone(), id);
        if let Some(port) = self.ports.get_mut(&id) {
            port.name.clone_from(&new);
        }
        self.changes.push(Change::PortRenamed { port: id, old: old.clone(), new: new.clone() });
        self.port_was_renamed(id, &old, &new);
        Ok(())
    }

    /// Adds an alias, if the port does not have it.
    pub fn set_alias(&mut self, id: u32, alias: &str) -> Result<(), RequestError> {
        name_rules::check_full(alias)?;
        let port = self.port_by_id(id)?;
        if port.aliases.iter().any(|other| other == alias) {
            return Ok(());
        }
        if port.aliases.len() == ALIASES {
            let advice = "remove one first".into();
            return Err(RequestError::Full { what: "alias of the port".into(), limit: 2, advice });
        }
        self.change_aliases(id, |aliases| aliases.push(alias.into()));
        Ok(())
    }

    /// Removes an alias.
    pub fn unset_alias(&mut self, id: u32, alias: &str) -> Result<(), RequestError> {
        if !self.port_by_id(id)?.aliases.iter().any(|other| other == alias) {
            return Err(RequestError::UnknownPort { name: alias.into(), nearest: None });
        }
        self.change_aliases(id, |aliases| aliases.retain(|other| other != alias));
        Ok(())
    }

    fn change_aliases(&mut self, id: u32, change: impl FnOnce(&mut Vec<String>)) {
        if let Some(port) = self.ports.get_mut(&id) {
            change(&mut port.aliases);
        }
        self.changes.push(Change::PortAliases(id));
    }

    /// Sets a port's latency; returns true if it has changed.
    pub fn set_latency(&mut self, id: u32, capture: bool, range: rt::shm::LatencyRange) -> bool {
        let Some(port) = self.ports.get_mut(&id) else { return false };
        let place = port.latency_mut(capture);
        let changed = *place != range;
        *place = range;
        changed
    }
}
