//! Clients, ports and connections that outlived another server: they become what they were, or are
//! refused.

use proto::names as name_rules;
use proto::request::{RequestError, ReturningConnection, ReturningPort};
use rt::shm::LatencyRange;

use super::{ALIASES, Change, Client, Model};

/// The greatest age that a connection can state: ages count connections.
const OLDEST_AGE: u64 = 1 << 62;

impl Model {
    /// Opens a client with this id and name, and with this uuid if a client may have it.
    pub fn return_client(&mut self, id: u32, uuid: u64, name: &str) -> Result<(), RequestError> {
        name_rules::check_client(name)?;
        let name = self.free_client_name(name, true)?;
        if !self.client_ids.take_this(id) {
            let reason =
                format!("client number {id} is in use or out of range: open '{name}' again");
            return Err(RequestError::NotAllowed(reason));
        }
        self.client_names.insert(name.clone(), id);
        let uuid = if self.is_free_uuid(uuid) { uuid } else { self.free_uuid(id) };
        self.clients.insert(id, Client { id, uuid, name, active: false, ports: Vec::new() });
        self.changes.push(Change::ClientOpened(id));
        self.client_came(id);
        Ok(())
    }

    /// Reserves the ids up to these for clients that return, as long as others are free.
    pub fn expect_ids(&mut self, last_client: u32, last_port: u32) {
        self.client_ids.keep_below(last_client.saturating_add(1));
        self.port_ids.keep_below(last_port.saturating_add(1));
    }

    /// Registers a port of `owner` as it was.
    pub fn return_port(&mut self, owner: u32, port: &ReturningPort) -> Result<(), RequestError> {
        let name = self.new_port_name(owner, &port.port)?;
        if port.aliases.len() > ALIASES {
            return Err(RequestError::Malformed(format!("a port has at most {ALIASES} aliases")));
        }
        port.aliases.iter().try_for_each(|alias| name_rules::check_full(alias))?;
        if !self.port_ids.take_this(port.id) {
            let reason = format!(
                "port number {} is in use or out of range: register '{name}' again",
                port.id
            );
            return Err(RequestError::NotAllowed(reason));
        }
        self.add_port(port.id, owner, name, &port.port);
        if let Some(added) = self.ports.get_mut(&port.id) {
            added.aliases.clone_from(&port.aliases);
            let range = |(min, max)| LatencyRange { min, max };
            added.capture_latency = range(port.capture_latency);
            added.playback_latency = range(port.playback_latency);
        }
        Ok(())
    }

    /// Gives a connection the age that it states, relative to those made from now on.
    pub fn return_age(&mut self, connection: &ReturningConnection) -> Result<(), RequestError> {
        if connection.age >= OLDEST_AGE {
            return Err(RequestError::Malformed("no connection is so young".into()));
        }
        let (source, destination) =
            (self.find(&connection.source)?.id, self.find(&connection.destination)?.id);
        for (port, other) in [(source, destination), (destination, source)] {
            let links = self.ports.get_mut(&port).map(|port| &mut port.links);
            for link in links.into_iter().flatten().filter(|link| link.other == other) {
                link.age = connection.age;
            }
        }
        self.next_age = self.next_age.max(connection.age + 1);
        Ok(())
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
        model.open_client("system", true).unwrap();
        model
    }

    fn port(id: u32, name: &str, flags: u32) -> ReturningPort {
        let port = NewPort {
            name: name.into(),
            port_type: PortType::Audio,
            flags,
            number: id,
            slot: None,
        };
        let (capture_latency, playback_latency) = ((1, 2), (3, 4));
        ReturningPort { id, port, aliases: vec!["hw:1".into()], capture_latency, playback_latency }
    }

    #[test]
    fn new_clients_do_not_take_the_numbers_of_returning_ones() {
        let mut model = model();
        model.expect_ids(5, 9);
        assert_eq!(model.open_client("new", false), Ok(6));
        assert_eq!(model.return_client(4, client_uuid(77), "old"), Ok(()));
        assert_eq!(model.client(4).unwrap().uuid, client_uuid(77));
        assert_eq!(model.return_port(4, &port(7, "out", 2)), Ok(()));
        let returned = model.port(7).unwrap();
        assert_eq!(
            (returned.name.as_str(), returned.number, &returned.aliases[..]),
            ("old:out", 7, &["hw:1".into()][..])
        );
        assert_eq!((returned.latency(true).max, returned.latency(false).min), (2, 3));
        let new = NewPort {
            name: "in".into(),
            port_type: PortType::Audio,
            flags: 1,
            number: 0,
            slot: None,
        };
        assert_eq!(model.register_port(6, &new), Ok(10));
    }

    #[test]
    fn a_refused_return_changes_nothing() {
        let mut model = model();
        model.open_client("taken", true).unwrap();
        for (case, id, name) in [
            ("id in use", 2, "old"),
            ("no id", 0, "old"),
            ("out of range", 9, "old"),
            ("name", 3, "taken"),
            ("bad", 3, ""),
        ] {
            assert!(model.return_client(id, client_uuid(id), name).is_err(), "{case}");
        }
        model.return_client(3, client_uuid(3), "old").unwrap();
        model.return_port(3, &port(4, "out", 2)).unwrap();
        model.take_changes();
        let aliases = vec!["a".to_owned(); 3];
        for (case, owner, bad) in [
            ("id in use", 3, port(4, "other", 2)),
            ("out of range", 3, port(17, "other", 2)),
            ("name", 3, port(5, "out", 1)),
            ("both directions", 3, port(5, "other", 3)),
            ("aliases", 3, ReturningPort { aliases, ..port(5, "other", 2) }),
            ("alias", 3, ReturningPort { aliases: vec!["\n".into()], ..port(5, "other", 2) }),
            ("no client's", 7, port(5, "other", 2)),
        ] {
            assert!(model.return_port(owner, &bad).is_err(), "{case}");
        }
        assert!(model.take_changes().is_empty());
        assert_eq!(model.counts().0, 1);
    }

    #[test]
    fn a_connection_is_as_old_as_it_was() {
        let mut model = model();
        model.return_client(3, client_uuid(3), "old").unwrap();
        model.return_port(3, &port(4, "out", 2)).unwrap();
        model.return_port(3, &port(5, "in", 1)).unwrap();
        model.set_active(3, true);
        model.connect("old:out", "old:in").unwrap();
        let connection = |age| ReturningConnection {
            source: "old:out".into(),
            destination: "old:in".into(),
            age,
        };
        assert!(model.return_age(&connection(u64::MAX)).is_err());
        model.return_age(&connection(40)).unwrap();
        let ages = [4, 5].map(|port| model.port(port).unwrap().links[0].age);
        assert_eq!((ages, model.next_age), ([40, 40], 41));
    }
}
