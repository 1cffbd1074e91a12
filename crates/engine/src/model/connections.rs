//! Connections: which may be made, and how they end.

use proto::request::RequestError;

use super::{Change, Link, Model, Port};

impl Model {
    /// Connects an output with an input port, both named.
    pub fn connect(&mut self, source: &str, destination: &str) -> Result<(u32, u32), RequestError> {
        let (source, destination) = (self.find(source)?, self.find(destination)?);
        self.check_ends(source, destination)?;
        let names = (source.name.clone(), destination.name.clone());
        let (source, destination) = (source.id, destination.id);
        if self.are_connected(source, destination) {
            return Err(RequestError::AlreadyConnected {
                source_port: names.0,
                destination: names.1,
            });
        }
        for port in [source, destination] {
            let owner = self.ports[&port].owner;
            if !self.clients[&owner].active {
                return Err(RequestError::Inactive(self.ports[&port].name.clone()));
            }
        }
        if self.connections >= self.limits.connections {
            return Err(RequestError::Full {
                what: "connection".into(),
                limit: self.limits.connections,
                advice: "start the server with a larger --port-max".into(),
            });
        }
        let age = self.next_age;
        self.next_age += 1;
        self.link(source, destination, age);
        Ok((source, destination))
    }

    fn link(&mut self, source: u32, destination: u32, age: u64) {
        let name =
            |port: u32| self.ports.get(&port).map_or_else(String::new, |port| port.name.clone());
        let (from, to) = (name(source), name(destination));
        self.remembered.drop_connection(&from, &to);
        self.connections += 1;
        for (port, other) in [(source, destination), (destination, source)] {
            if let Some(port) = self.ports.get_mut(&port) {
                port.links.push(Link { other, age });
            }
        }
        self.changes.push(Change::Connected { source, destination });
    }

    fn check_ends(&self, source: &Port, destination: &Port) -> Result<(), RequestError> {
        if !source.is_output() {
            return Err(RequestError::WrongDirection {
                port: source.name.clone(),
                wanted: "output".into(),
            });
        }
        if !destination.is_input() {
            return Err(RequestError::WrongDirection {
                port: destination.name.clone(),
                wanted: "input".into(),
            });
        }
        if source.port_type != destination.port_type {
            let (source_port, destination) = (source.name.clone(), destination.name.clone());
            return Err(RequestError::TypeMismatch { source_port, destination });
        }
        Ok(())
    }

    /// Whether a connection exists.
    pub fn are_connected(&self, source: u32, destination: u32) -> bool {
        self.ports
            .get(&source)
            .is_some_and(|port| port.links.iter().any(|link| link.other == destination))
    }

    /// Whether a connection exists, by the exact names of its ports.
    pub fn are_connected_by_name(&self, source: &str, destination: &str) -> bool {
        let ports = self.port_named(source).zip(self.port_named(destination));
        ports.is_some_and(|(source, destination)| self.are_connected(source.id, destination.id))
    }

    /// Disconnects two ports, both named.
    pub fn disconnect(&mut self, source: &str, destination: &str) -> Result<(), RequestError> {
        let (source, destination) = (self.find(source)?, self.find(destination)?);
        let names = (source.name.clone(), destination.name.clone());
        let (source, destination) = (source.id, destination.id);
        if !self.are_connected(source, destination) || !self.ports[&source].is_output() {
            return Err(RequestError::NotConnected { source_port: names.0, destination: names.1 });
        }
        self.cut(source, destination);
        Ok(())
    }

    /// Removes all connections of a port.
    pub fn disconnect_all(&mut self, id: u32) -> Result<(), RequestError> {
        self.port_by_id(id)?;
        self.cut_all(id, |_, _, _| {});
        Ok(())
    }

    /// Removes all connections of a port that is being removed; they are remembered for its return.
    pub(super) fn take_connections(&mut self, id: u32) {
        self.cut_all(id, Self::keep_connection);
    }

    fn cut_all(&mut self, id: u32, before: impl Fn(&mut Self, u32, u32)) {
        let Some(port) = self.ports.get(&id) else { return };
        let output = port.is_output();
        for link in port.links.clone() {
            let (source, destination) = if output { (id, link.other) } else { (link.other, id) };
            before(self, source, destination);
            self.cut(source, destination);
        }
    }

    fn cut(&mut self, source: u32, destination: u32) {
        for (port, other) in [(source, destination), (destination, source)] {
            if let Some(port) = self.ports.get_mut(&port) {
                port.links.retain(|link| link.other != other);
            }
        }
        self.connections -= 1;
        self.changes.push(Change::Disconnected { source, destination });
    }
}
