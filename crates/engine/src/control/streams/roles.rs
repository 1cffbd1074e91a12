//! What clients of the graph are for, as they say themselves, for programs that hold streams while
//! a phone call is heard.

use proto::limits::{ROLE_BYTES, ROLES};
use proto::property::{ROLE_KEY, Subject};
use proto::stream::ClientRole;

use crate::control::Control;
use crate::model::{Change, Model};

impl Control {
    /// Has programs that wait for a change of the devices look at the roles, if an active client
    /// may have another one.
    pub(in crate::control) fn note_role_change(&mut self, change: &Change) {
        if concerns_roles(&self.model, change) {
            self.streams.watches.note_change();
        }
    }
}

/// Returns the roles of the clients that are active.
pub(super) fn roles(model: &Model) -> Vec<ClientRole> {
    let clients = model.clients().filter(|client| client.active);
    // Programs with streams state those of each stream, to whom they know.
    let clients = clients.filter(|client| !model.is_server_written(client.id));
    let stated = clients.filter_map(|client| {
        let role = model.property(client.uuid, ROLE_KEY).ok()?.text;
        let is_role = role.len() <= ROLE_BYTES;
        is_role.then(|| ClientRole { client: client.name.clone(), role })
    });
    // MUTATION: roles.any_number
    stated.take(ROLES).collect()
}

/// Returns whether an active client may have another role than before a change.
fn concerns_roles(model: &Model, change: &Change) -> bool {
    match change {
        Change::ClientActivity(client) => {
            let uuid = model.client(*client).map(|client| client.uuid);
            uuid.is_some_and(|uuid| model.property(uuid, ROLE_KEY).is_ok())
        }
        // Without a key, it is about all properties: those of a client that leaves, too.
        Change::Property { subject, key, .. } => {
            let is_client = matches!(Subject::of(*subject), Some(Subject::Client(_)));
            (*subject == 0 || is_client) && (key.is_empty() || key == ROLE_KEY)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proto::property::{Property, PropertyValue};

    use super::*;
    use crate::model::Limits;

    fn model() -> Model {
        Model::new(Limits { clients: 200, ports: 8, connections: 8 })
    }

    fn open(model: &mut Model, name: &str) -> u32 {
        let client = model.open_client(name, true).unwrap();
        model.set_active(client, true);
        client
    }

    fn state(model: &mut Model, client: u32, key: &str, text: &str) {
        let subject = model.client(client).unwrap().uuid;
        let value = PropertyValue { text: text.into(), type_name: "text/plain".into() };
        model.set_property(Property { subject, key: key.into(), value }).unwrap();
    }

    fn shown(model: &Model) -> Vec<(String, String)> {
        roles(model).into_iter().map(|of| (of.client, of.role)).collect()
    }

    /// Whether the changes since the last time concern roles.
    fn concerns(model: &mut Model) -> bool {
        let changes = model.take_changes();
        changes.iter().any(|change| concerns_roles(model, change))
    }

    #[test]
    fn the_role_of_a_client_counts_while_it_is_active() {
        let mut model = model();
        let (call, other) = (open(&mut model, "call"), open(&mut model, "other"));
        assert!(!concerns(&mut model), "no client has a role");
        state(&mut model, call, ROLE_KEY, "phone");
        assert!(concerns(&mut model));
        let phone = || vec![("call".to_owned(), "phone".to_owned())];
        assert_eq!(shown(&model), phone());
        state(&mut model, other, "another key", "phone");
        model.set_active(other, false);
        assert!(!concerns(&mut model), "nobody's role is another one");
        model.set_active(call, false);
        assert!(concerns(&mut model));
        assert_eq!(shown(&model), []);
        model.set_active(call, true);
        assert!(concerns(&mut model));
        assert_eq!(shown(&model), phone());
        model.close_client(call);
        assert!(concerns(&mut model));
        assert_eq!(shown(&model), []);
    }

    #[test]
    fn a_program_with_streams_and_a_longer_text_than_any_have_no_role() {
        let mut model = model();
        let streams = model.open_stream_client("mpv").unwrap();
        state(&mut model, streams, ROLE_KEY, "phone");
        let client = open(&mut model, "call");
        state(&mut model, client, ROLE_KEY, &"x".repeat(ROLE_BYTES + 1));
        assert_eq!(shown(&model), []);
    }

    #[test]
    fn an_answer_has_as_many_roles_as_fit_into_it() {
        let mut model = model();
        for number in 0..2 * ROLES {
            let name = format!("{number:0>64}");
            let client = open(&mut model, &name);
            state(&mut model, client, ROLE_KEY, &"x".repeat(ROLE_BYTES));
        }
        assert_eq!(roles(&model).len(), ROLES);
        assert!(proto::encode(&roles(&model)).len() < proto::MAX_PACKET_BYTES / 2);
    }
}
