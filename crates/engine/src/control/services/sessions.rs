//! Sessions: one client asks the others to save, and receives all answers together.

use std::collections::{BTreeMap, BTreeSet};

use proto::event::Event;
use proto::limits::{SESSION_COMMAND_BYTES, SESSION_PATH_BYTES};
use proto::request::{Reply, RequestError};
use proto::session::{SessionAnswer, SessionCommand, SessionKind};

use super::super::clients::Clients;
use super::super::ticket::Ticket;
use crate::model::Model;

/// The session that is being saved, if there is one.
#[derive(Debug, Default)]
pub(in super::super) struct Sessions {
    saving: Option<Saving>,
}

#[derive(Debug)]
struct Saving {
    ticket: Ticket,
    /// The tokens of the unanswered questions, by client.
    waiting: BTreeMap<u32, u64>,
    commands: Vec<SessionCommand>,
    bytes: usize,
    deadline_ns: u64,
}

/// Programs may write large files. A client that has not answered within this time is left out of
/// the list.
const SAVING_NS: u64 = 30_000_000_000;
/// The most that an answer with all commands takes, less than a packet.
const COMMANDS_BYTES: usize = 48 * 1024;

/// What clients are asked to save.
#[derive(Debug)]
pub(in super::super) struct SaveRequest {
    /// The only client that is asked; `None`: all.
    pub(in super::super) target: Option<String>,
    pub(in super::super) kind: SessionKind,
    pub(in super::super) path: String,
}

impl Sessions {
    /// Checks whether a session can be saved.
    ///
    /// # Errors
    /// [`RequestError`]: why it cannot.
    pub(in super::super) fn check(&self, path: &str) -> Result<(), RequestError> {
        if path.is_empty() || path.len() > SESSION_PATH_BYTES || path.contains('\0') {
            let reason =
                format!("a session needs a directory, of at most {SESSION_PATH_BYTES} bytes");
            return Err(RequestError::NotAllowed(reason));
        }
        if self.saving.is_some() {
            return Err(RequestError::Failed("another session is being saved".into()));
        }
        Ok(())
    }

    /// Returns whether answers are waited for.
    pub(in super::super) fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// Asks every client of `may_save` that has a session callback, or the requested one.
    ///
    /// # Errors
    /// The ticket, and the reason, if the requested client is not in `may_save`.
    pub(in super::super) fn ask(
        &mut self,
        ticket: Ticket,
        request: SaveRequest,
        (model, clients): (&Model, &mut Clients),
        may_save: &BTreeSet<u32>,
        now_ns: u64,
    ) -> Result<(), (Ticket, RequestError)> {
        let SaveRequest { target, kind, path } = request;
        let is_meant = |name: &str| target.as_ref().is_none_or(|target| target == name);
        let mut waiting = BTreeMap::new();
        for client in model.clients().filter(|client| is_meant(&client.name)) {
            if !may_save.contains(&client.id) {
                if target.is_none() {
                    continue;
                }
                let reason = format!(
                    "'{}' is a program of another user, which saves nothing in a directory that \
                     this user names: ask as that user",
                    client.name
                );
                return Err((ticket, RequestError::NotAllowed(reason)));
            }
            if !has_callback(clients, client.id) {
                continue;
            }
            let question = |token| Event::Session { kind, path: path.clone(), token };
            waiting.extend(clients.ask(client.id, question).map(|token| (client.id, token)));
        }
        let deadline_ns = now_ns + SAVING_NS;
        self.saving = Some(Saving { ticket, waiting, commands: Vec::new(), bytes: 0, deadline_ns });
        Ok(())
    }

    /// Notes that a client has saved; its command is in the list, if it has one.
    pub(in super::super) fn answered(
        &mut self,
        client: u32,
        token: u64,
        answer: SessionAnswer,
        model: &Model,
    ) {
        let Some(saving) = &mut self.saving else { return };
        if saving.waiting.get(&client) != Some(&token) {
            return;
        }
        saving.waiting.remove(&client);
        let Some(client) = model.client(client) else { return };
        let (uuid, name) = (client.uuid, client.name.clone());
        let bytes = name.len() + answer.command.len() + 32;
        let has_room = saving.bytes + bytes <= COMMANDS_BYTES;
        if answer.command.len() <= SESSION_COMMAND_BYTES && has_room {
            saving.bytes += bytes;
            saving.commands.push(SessionCommand { uuid, client: name, answer });
        }
    }

    /// Stops waiting for a client that has gone.
    pub(in super::super) fn forget(&mut self, client: u32) {
        if let Some(saving) = &mut self.saving {
            saving.waiting.remove(&client);
        }
    }

    /// Takes the answer to the session manager, when all clients have answered or their time is
    /// over.
    pub(in super::super) fn take_due(&mut self, now_ns: u64) -> Option<(Ticket, Reply)> {
        let is_due =
            |saving: &mut Saving| saving.waiting.is_empty() || saving.deadline_ns <= now_ns;
        let saving = self.saving.take_if(is_due)?;
        Some((saving.ticket, Reply::Session(saving.commands)))
    }
}

/// Returns whether a client has a session callback.
pub(in super::super) fn has_callback(clients: &Clients, client: u32) -> bool {
    let activation = clients.slots.get(&client).and_then(|slot| slot.activation);
    activation.is_some_and(|activation| activation.session_callback)
}
