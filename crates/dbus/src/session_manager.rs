//! `org.jackaudio.SessionManager`: sessions, and clients by their uuids.

use std::sync::Arc;

use client::{Observer, Requester, SessionKind};
use zbus::interface;
use zbus::object_server::SignalEmitter;

// The macro recognizes a fallible method by this name of its return type.
use crate::failure::{Answer as Result, Failure};
use crate::service::Service;

/// The interface.
pub(crate) struct SessionManager(pub(crate) Arc<Service>);

/// A client's answer: uuid, name, command, flags.
type Answered = (String, String, String, u32);

fn kind(number: u32) -> Result<SessionKind> {
    match number {
        1 => Ok(SessionKind::Save),
        2 => Ok(SessionKind::SaveAndQuit),
        3 => Ok(SessionKind::SaveTemplate),
        _ => Err(Failure::InvalidArgs(format!(
            "{number} is not a kind of session: 1 save, 2 save and quit, 3 template"
        ))),
    }
}

fn no_client(name: &str) -> Failure {
    Failure::InvalidArgs(format!("there is no client '{}'", name.escape_debug()))
}

fn uuid(text: &str) -> Result<u64> {
    let number = text
        .parse()
        .map_err(|_| Failure::InvalidArgs(format!("'{}' is not a uuid", text.escape_debug())))?;
    Ok(number)
}

fn uuid_of(server: &Observer, name: &str) -> Result<u64> {
    let found = server.registry().clients().find(|client| client.name == name);
    found.map(|client| client.uuid).ok_or_else(|| no_client(name))
}

#[interface(name = "org.jackaudio.SessionManager")]
impl SessionManager {
    /// Asks clients to save in a directory, and waits for their answers as long as the server does.
    /// One session is saved at a time, so calls are queued whether or not `queue` asks for it.
    fn notify(&self, queue: bool, target: &str, r#type: u32, path: &str) -> Result<Vec<Answered>> {
        let _ = queue;
        let kind = kind(r#type)?;
        let client = Some(target).filter(|target| !target.is_empty());
        // Uses a separate connection to the server: saving may take long, and other calls must not
        // wait.
        let name = self.0.state().parameters.server();
        let server = Observer::open_running(Some(&name))?;
        self.0.note_session(r#type, target);
        let answered = server.notify_session(client, kind, path);
        self.0.note_session(0, "");
        let listed = answered?.into_iter().map(|command| {
            (command.uuid.to_string(), command.client, command.answer.command, command.answer.flags)
        });
        Ok(listed.collect())
    }

    fn get_uuid_for_client_name(&self, name: &str) -> Result<String> {
        self.0.with_server(|server, _| Ok(uuid_of(server, name)?.to_string()))
    }

    fn get_client_name_by_uuid(&self, uuid: &str) -> Result<String> {
        let wanted = self::uuid(uuid)?;
        self.0.with_server(|server, _| {
            let found = server.registry().clients().find(|client| client.uuid == wanted);
            let missing = || Failure::InvalidArgs(format!("there is no client of uuid {wanted}"));
            found.map(|client| client.name).ok_or_else(missing)
        })
    }

    fn reserve_client_name(&self, name: &str, uuid: &str) -> Result<()> {
        let uuid = self::uuid(uuid)?;
        self.0.with_server(|server, _| Ok(server.reserve_name(name, uuid)?))
    }

    fn has_session_callback(&self, client_name: &str) -> Result<bool> {
        self.0.with_server(|server, _| {
            uuid_of(server, client_name)?;
            Ok(server.has_session_callback(client_name)?)
        })
    }

    /// Returns kind and target of the session that is being saved; 0 and an empty text if none is.
    #[zbus(out_args("type", "target"))]
    fn get_state(&self) -> (u32, String) {
        self.0.state().saving.clone()
    }

    #[zbus(signal)]
    pub(crate) async fn state_changed(
        emitter: &SignalEmitter<'_>,
        r#type: u32,
        target: &str,
    ) -> zbus::Result<()>;
}
