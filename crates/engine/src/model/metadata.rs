//! Properties of clients and ports, which live as long as their subject.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use proto::limits::{PROPERTIES_PER_CLIENT, PROPERTY_BYTES_PER_CLIENT, PROPERTY_PAGE_BYTES};
use proto::property::{
    Property, PropertyChange, PropertyPage, PropertyValue, Subject, check_texts, port_uuid,
};
use proto::request::RequestError;

use super::{Change, Model};

/// All properties, by subject and key, and the clients whose quota they count against.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    properties: BTreeMap<(u64, String), PropertyValue>,
    /// The quota used by each owner: see [`Model::property_owner`].
    used: BTreeMap<u32, Used>,
    /// The client whose quota the properties of a subject count against.
    owners: BTreeMap<u64, u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    count: usize,
    bytes: usize,
}

/// The owner of all subjects that are neither a client nor a port.
const NO_OWNER: u32 = 0;

fn size(key: &str, value: &PropertyValue) -> usize {
    key.len() + value.text.len() + value.type_name.len()
}

fn check(property: &Property) -> Result<(), RequestError> {
    let Property { subject, key, value } = property;
    check_texts(key, &value.text, &value.type_name).map_err(RequestError::Property)?;
    if *subject == 0 {
        return Err(RequestError::Property(
            "the uuid 0 names nothing that could have a property".into(),
        ));
    }
    Ok(())
}

impl Metadata {
    fn take(&mut self, subject: u64, key: &str) -> Option<PropertyValue> {
        // An owned key, because a pair of borrowed ones is another type.
        let value = self.properties.remove(&(subject, key.to_owned()))?;
        let owner = self.owners.get(&subject).copied().unwrap_or(NO_OWNER);
        if let Some(used) = self.used.get_mut(&owner) {
            used.count -= 1;
            used.bytes -= size(key, &value);
            if used.count == 0 {
                self.used.remove(&owner);
            }
        }
        if self.of(subject).next().is_none() {
            self.owners.remove(&subject);
        }
        Some(value)
    }

    /// The properties of a subject, by key.
    pub(super) fn of(
        &self,
        subject: u64,
    ) -> impl Iterator<Item = (&(u64, String), &PropertyValue)> {
        self.properties
            .range((subject, String::new())..)
            .take_while(move |((of, _), _)| *of == subject)
    }

    fn put(&mut self, owner: u32, property: Property) {
        let owner = *self.owners.entry(property.subject).or_insert(owner);
        let used = self.used.entry(owner).or_default();
        used.count += 1;
        used.bytes += property.bytes();
        self.properties.insert((property.subject, property.key), property.value);
    }

    fn take_all(&mut self, subject: u64) -> u32 {
        let keys: Vec<String> = self.of(subject).map(|((_, key), _)| key.clone()).collect();
        let taken = keys.iter().filter(|key| self.take(subject, key).is_some()).count();
        u32::try_from(taken).unwrap_or(u32::MAX)
    }
}

impl Model {
    /// The client whose quota a subject's properties count against.
    pub fn property_owner(&self, subject: u64) -> u32 {
        match Subject::of(subject) {
            Some(Subject::Client(_)) => self.client_by_uuid(subject).unwrap_or(NO_OWNER),
            Some(Subject::Port(port)) => self.ports.get(&port).map_or(NO_OWNER, |port| port.owner),
            _ => NO_OWNER,
        }
    }

    /// Sets a property, whatever its subject is.
    pub fn set_property(&mut self, property: Property) -> Result<(), RequestError> {
        check(&property)?;
        let subject = property.subject;
        let owner = self
            .metadata
            .owners
            .get(&subject)
            .copied()
            .unwrap_or_else(|| self.property_owner(subject));
        let before = self.metadata.properties.get(&(subject, property.key.clone()));
        let used = self.metadata.used.get(&owner).copied().unwrap_or_default();
        let replaced = before.map_or(0, |value| size(&property.key, value));
        let full = |what: &str, limit: usize| RequestError::Full {
            what: format!("property of one client and its ports ({what})"),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            advice: "remove some that are not needed".into(),
        };
        // MUTATION: set_property.any_number
        if before.is_none() && used.count >= PROPERTIES_PER_CLIENT {
            return Err(full("how many", PROPERTIES_PER_CLIENT));
        }
        // MUTATION: set_property.any_size
        if used.bytes - replaced + property.bytes() > PROPERTY_BYTES_PER_CLIENT {
            return Err(full("all their bytes", PROPERTY_BYTES_PER_CLIENT));
        }
        let change =
            if before.is_none() { PropertyChange::Created } else { PropertyChange::Changed };
        self.metadata.take(subject, &property.key);
        self.changes.push(Change::Property { subject, key: property.key.clone(), change });
        self.metadata.put(owner, property);
        Ok(())
    }

    /// A property's value.
    pub fn property(&self, subject: u64, key: &str) -> Result<PropertyValue, RequestError> {
        let found = self.metadata.properties.get(&(subject, key.to_owned()));
        found
            .cloned()
            .ok_or_else(|| RequestError::Property(format!("{subject} has no property '{key}'")))
    }

    /// Returns as many properties as fit into a packet, and whether there are more.
    pub fn properties(&self, page: &PropertyPage) -> (Vec<Property>, bool) {
        let after =
            page.after.clone().or_else(|| page.subject.map(|subject| (subject, String::new())));
        let first = after.map_or(Unbounded, Excluded);
        let all = self.metadata.properties.range((first, Unbounded));
        let wanted = |subject: u64| page.subject.is_none_or(|wanted| wanted == subject);
        let mut bytes = 0;
        let mut found = Vec::new();
        for ((subject, key), value) in all.take_while(|((subject, _), _)| wanted(*subject)) {
            let property = Property { subject: *subject, key: key.clone(), value: value.clone() };
            bytes += property.bytes() + PROPERTY_OVERHEAD_BYTES;
            if bytes > PROPERTY_PAGE_BYTES && !found.is_empty() {
                return (found, true);
            }
            found.push(property);
        }
        (found, false)
    }

    /// Removes a property.
    pub fn remove_property(&mut self, subject: u64, key: &str) -> Result<(), RequestError> {
        self.property(subject, key)?;
        self.metadata.take(subject, key);
        let change = PropertyChange::Deleted;
        self.changes.push(Change::Property { subject, key: key.to_owned(), change });
        Ok(())
    }

    /// Removes all properties of a subject; returns how many there were.
    pub fn remove_properties(&mut self, subject: u64) -> u32 {
        let removed = self.metadata.take_all(subject);
        if removed > 0 {
            self.changes.push(Change::Property {
                subject,
                key: String::new(),
                change: PropertyChange::Deleted,
            });
        }
        removed
    }

    /// Removes all properties of everything.
    pub fn remove_all_properties(&mut self) {
        let had_any = !self.metadata.properties.is_empty();
        self.metadata = Metadata::default();
        self.remembered.drop_properties();
        if had_any {
            let change = PropertyChange::Deleted;
            self.changes.push(Change::Property { subject: 0, key: String::new(), change });
        }
    }

    pub(super) fn forget_client_properties(&mut self, client: u32) {
        self.keep_client(client);
        if let Some(uuid) = self.clients.get(&client).map(|client| client.uuid) {
            self.remove_properties(uuid);
        }
    }

    pub(super) fn forget_port_properties(&mut self, port: u32) {
        self.keep_port(port);
        self.remove_properties(port_uuid(port));
    }
}

/// The most bytes that a property takes in a packet in addition to its texts.
const PROPERTY_OVERHEAD_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use proto::limits::{PROPERTY_KEY_BYTES, PROPERTY_TYPE_BYTES, PROPERTY_VALUE_BYTES};
    use proto::property::client_uuid;

    use super::super::Limits;
    use super::*;

    fn property(subject: u64, key: &str, value: &str) -> Property {
        let value = PropertyValue { text: value.into(), type_name: String::new() };
        Property { subject, key: key.into(), value }
    }

    fn model() -> Model {
        let mut model = Model::new(Limits { clients: 4, ports: 8, connections: 8 });
        for name in ["a", "b"] {
            model.open_client(name, true).unwrap();
        }
        model.take_changes();
        model
    }

    fn all(model: &Model) -> Vec<(u64, String, String)> {
        let (properties, more) = model.properties(&PropertyPage { subject: None, after: None });
        assert!(!more);
        properties.into_iter().map(|found| (found.subject, found.key, found.value.text)).collect()
    }

    #[test]
    fn changes_tell_what_became_of_a_property() {
        let mut model = model();
        let (subject, key) = (client_uuid(1), "k".to_owned());
        let last_change = |model: &mut Model| match model.take_changes().as_slice() {
            [] => None,
            [Change::Property { subject: _, key, change }] => Some((key.clone(), *change)),
            other => panic!("{other:?}"),
        };
        model.set_property(property(subject, "k", "1")).unwrap();
        assert_eq!(last_change(&mut model), Some((key.clone(), PropertyChange::Created)));
        model.set_property(property(subject, "k", "1")).unwrap();
        assert_eq!(
            last_change(&mut model),
            Some((key.clone(), PropertyChange::Changed)),
            "the same value, as in JACK2"
        );
        model.set_property(property(subject, "k", "2")).unwrap();
        assert_eq!(last_change(&mut model), Some((key.clone(), PropertyChange::Changed)));
        model.remove_property(subject, "k").unwrap();
        assert_eq!(last_change(&mut model), Some((key, PropertyChange::Deleted)));
        assert!(model.remove_property(subject, "k").is_err());
        assert_eq!(model.remove_properties(subject), 0);
        model.remove_all_properties();
        assert_eq!(last_change(&mut model), None, "there was nothing to remove");
    }

    #[test]
    fn properties_are_removed_only_with_their_own_subject() {
        let mut model = model();
        let new = proto::request::NewPort {
            name: "in".into(),
            port_type: proto::request::PortType::Audio,
            flags: 1,
            number: 0,
            slot: None,
        };
        let port = model.register_port(1, &new).unwrap();
        for subject in [client_uuid(1), client_uuid(2), port_uuid(port), 7] {
            model.set_property(property(subject, "k", "v")).unwrap();
        }
        model.take_changes();
        model.unregister_port(1, port).unwrap();
        let deleted = |subject| Change::Property {
            subject,
            key: String::new(),
            change: PropertyChange::Deleted,
        };
        assert!(model.take_changes().contains(&deleted(port_uuid(port))));
        model.close_client(1);
        assert!(model.take_changes().contains(&deleted(client_uuid(1))));
        let left: Vec<u64> = all(&model).into_iter().map(|(subject, ..)| subject).collect();
        assert_eq!(left, [7, client_uuid(2)]);
    }

    #[test]
    fn a_refused_property_changes_nothing() {
        let mut model = model();
        let subject = client_uuid(1);
        let long = |bytes| "x".repeat(bytes);
        let with_type = |bytes| {
            let mut property = property(subject, "k", "v");
            property.value.type_name = long(bytes);
            property
        };
        for (refused, word) in [
            (property(subject, "", "v"), "needs a key and a value"),
            (property(subject, "k", ""), "needs a key and a value"),
            (property(0, "k", "v"), "names nothing"),
            (property(subject, "k\0", "v"), "must not contain a 0"),
            (property(subject, &long(PROPERTY_KEY_BYTES + 1), "v"), "key of 1025 bytes"),
            (property(subject, "k", &long(PROPERTY_VALUE_BYTES + 1)), "value of 49153 bytes"),
            (with_type(PROPERTY_TYPE_BYTES + 1), "type of 257 bytes"),
        ] {
            let error = model.set_property(refused).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert_eq!((all(&model), model.take_changes()), (vec![], vec![]));
        for number in 0..PROPERTIES_PER_CLIENT {
            model.set_property(property(subject, &number.to_string(), "v")).unwrap();
        }
        let error = model.set_property(property(subject, "one more", "v")).unwrap_err().to_string();
        assert!(error.contains("limit is 1024"), "{error}");
        model.set_property(property(subject, "0", "another value")).unwrap();
        model.set_property(property(client_uuid(2), "k", "another client's")).unwrap();
        model.remove_property(subject, "1").unwrap();
        model.set_property(property(subject, "one more", "v")).unwrap();
    }

    #[test]
    fn all_properties_of_a_client_together_have_a_limit_in_bytes() {
        let mut model = model();
        let large = "x".repeat(PROPERTY_VALUE_BYTES);
        let mut set = 0;
        while model.set_property(property(client_uuid(1), &format!("{set}"), &large)).is_ok() {
            set += 1;
        }
        assert_eq!(set, PROPERTY_BYTES_PER_CLIENT / (PROPERTY_VALUE_BYTES + 2));
        assert_eq!(model.remove_properties(client_uuid(1)) as usize, set);
        model.set_property(property(client_uuid(1), "k", &large)).unwrap();
    }

    #[test]
    fn pages_hold_every_property_exactly_once() {
        let mut model = model();
        let value = "x".repeat(9000);
        let expected: Vec<(u64, String)> = (1..4_u64)
            .flat_map(|subject| (0..9).map(move |key| (subject << 33, format!("k{key}"))))
            .collect();
        for (subject, key) in &expected {
            model.set_property(property(*subject, key, &value)).unwrap();
        }
        for subject in [None, Some(2 << 33)] {
            let mut page = PropertyPage { subject, after: None };
            let mut found = Vec::new();
            loop {
                let (properties, more) = model.properties(&page);
                assert!(proto::encode(&properties).len() < proto::MAX_PACKET_BYTES);
                found.extend(
                    properties.into_iter().map(|property| (property.subject, property.key)),
                );
                page.after = found.last().cloned();
                if !more {
                    break;
                }
            }
            let wanted =
                expected.iter().filter(|(of, _)| subject.is_none_or(|subject| subject == *of));
            assert_eq!(found, wanted.cloned().collect::<Vec<_>>());
        }
    }
}
