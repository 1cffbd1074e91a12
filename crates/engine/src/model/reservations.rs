//! Names that are reserved for the clients of a session.

use proto::limits::RESERVED_NAMES;
use proto::names;
use proto::property::{Subject, client_uuid};
use proto::request::RequestError;

use super::Model;

impl Model {
    /// Reserves `name` for the client that opens with `uuid`.
    pub fn reserve_name(&mut self, name: &str, uuid: u64) -> Result<(), RequestError> {
        names::check_client(name)?;
        let by_other = self.reserved.iter().any(|(of, reserved)| *of != uuid && reserved == name);
        if by_other || self.client_names.contains_key(name) {
            return Err(RequestError::NameTaken(name.into()));
        }
        if self.reserved.len() >= RESERVED_NAMES && !self.reserved.contains_key(&uuid) {
            return Err(RequestError::Full {
                what: "reserved name".into(),
                limit: u32::try_from(RESERVED_NAMES).unwrap_or(u32::MAX),
                advice: "open the clients that names are reserved for".into(),
            });
        }
        self.reserved.insert(uuid, name.into());
        Ok(())
    }

    /// Opens a client of a session under the uuid that it has there: with the name reserved for
    /// that uuid, if any. The client receives the uuid unless another one has it or it is not a
    /// client's uuid.
    pub fn open_session_client(
        &mut self,
        name: &str,
        exact: bool,
        uuid: u64,
    ) -> Result<u32, RequestError> {
        let reserved = self.reserved.remove(&uuid);
        let opened = self.open_client_as(reserved.as_deref().unwrap_or(name), exact, Some(uuid));
        if opened.is_err() {
            self.reserved.extend(reserved.map(|name| (uuid, name)));
        }
        opened
    }

    /// The client with that uuid.
    pub(super) fn client_by_uuid(&self, uuid: u64) -> Option<u32> {
        self.clients.values().find(|client| client.uuid == uuid).map(|client| client.id)
    }

    /// Whether a client may have that uuid.
    pub(super) fn is_free_uuid(&self, uuid: u64) -> bool {
        matches!(Subject::of(uuid), Some(Subject::Client(_))) && !self.has_uuid(uuid)
    }

    fn has_uuid(&self, uuid: u64) -> bool {
        self.client_by_uuid(uuid).is_some()
    }

    /// A uuid for client `id`: the one made from its id, unless a client of a session has it.
    pub(super) fn free_uuid(&self, id: u32) -> u64 {
        let made = (1..).map(|number| client_uuid(id.wrapping_add(number << 20) | 1 << 31));
        std::iter::once(client_uuid(id))
            .chain(made)
            .find(|uuid| !self.has_uuid(*uuid))
            .unwrap_or_else(|| client_uuid(id))
    }

    /// Whether the name is in use or reserved.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.client_names.contains_key(name)
            || self.reserved.values().any(|reserved| reserved == name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::*;

    #[test]
    fn a_reserved_name_is_kept_from_all_others_until_its_uuid_comes() {
        let mut model = Model::new(Limits { clients: 8, ports: 8, connections: 8 });
        model.open_client("open", true).unwrap();
        model.reserve_name("synth", 7).unwrap();
        model.reserve_name("synth", 7).unwrap();
        for (name, uuid) in [("synth", 8), ("open", 9), ("", 9)] {
            assert!(model.reserve_name(name, uuid).is_err(), "{name}");
        }
        assert!(model.open_client("synth", true).is_err());
        let other = model.open_client("synth", false).unwrap();
        assert_eq!(model.client(other).unwrap().name, "synth-01");
        let other = model.open_session_client("another", false, 8).unwrap();
        assert_eq!(model.client(other).unwrap().name, "another", "nothing was kept for it");
        let client = model.open_session_client("anything", true, 7).unwrap();
        assert_eq!(model.client(client).unwrap().name, "synth");
        let again = model.open_session_client("anything", true, 7).unwrap();
        assert_eq!(model.client(again).unwrap().name, "anything", "once");
    }

    #[test]
    fn no_two_clients_share_a_session_uuid() {
        let mut model = Model::new(Limits { clients: 8, ports: 8, connections: 8 });
        let uuid = |model: &Model, client: u32| model.client(client).unwrap().uuid;
        let first = model.open_client("first", true).unwrap();
        assert_eq!(uuid(&model, first), client_uuid(first));
        // The uuid that the third client would have.
        let second = model.open_session_client("second", true, client_uuid(3)).unwrap();
        assert_eq!(uuid(&model, second), client_uuid(3));
        let third = model.open_client("third", true).unwrap();
        assert!(![uuid(&model, first), uuid(&model, second)].contains(&uuid(&model, third)));
        assert!(matches!(Subject::of(uuid(&model, third)), Some(Subject::Client(_))));
        for taken in [client_uuid(1), proto::property::port_uuid(4), 5] {
            let client = model.open_session_client("x", false, taken).unwrap();
            assert_ne!(uuid(&model, client), taken);
        }
    }
}
