//! Names that are kept for the clients of a session.

use proto::limits::RESERVED_NAMES;
use proto::names;
use proto::request::RequestError;

use super::Model;

impl Model {
    /// Keeps `name` for the client that opens with `uuid`.
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

    /// Gives out the name that was kept for `uuid`.
    pub fn take_reserved(&mut self, uuid: u64) -> Option<String> {
        self.reserved.remove(&uuid)
    }

    /// Whether a client must not take this name.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.client_names.contains_key(name) || self.reserved.values().any(|reserved| reserved == name)
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
        assert_eq!(model.take_reserved(8), None);
        let name = model.take_reserved(7).unwrap();
        model.open_client(&name, true).unwrap();
        assert_eq!(model.take_reserved(7), None, "once");
    }
}
