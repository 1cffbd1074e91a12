//! Sessions: one client asks the others to save, and gets their answers together.

use std::collections::BTreeMap;

use proto::event::Event;
use proto::limits::{SESSION_COMMAND_BYTES, SESSION_PATH_BYTES};
use proto::request::{Reply, RequestError};
use proto::session::{SessionAnswer, SessionCommand, SessionKind, SessionRequest};
use sys::clock::now_ns;

use super::Control;
use super::requests::Outcome;

/// A question under way.
#[derive(Debug)]
pub(super) struct SessionPass {
    connection: u64,
    number: u32,
    /// By client: the tokens of the questions that are not answered.
    waiting: BTreeMap<u32, u64>,
    commands: Vec<SessionCommand>,
    bytes: usize,
    deadline_ns: u64,
}

/// Programs may write large files; who has not answered by then is left out of the list.
const SAVING_NS: u64 = 30_000_000_000;
/// What an answer with all commands may take, less than a packet.
const COMMANDS_BYTES: usize = 48 * 1024;

/// What is to be sent to the clients.
pub(super) struct Question {
    target: Option<String>,
    kind: SessionKind,
    path: String,
}

impl Control {
    pub(super) fn answer_session(&mut self, request: SessionRequest) -> Result<Outcome, RequestError> {
        match request {
            SessionRequest::Reserve { name, uuid } => {
                self.parts.model.reserve_name(&name, uuid)?;
                Ok(Outcome::Now(Reply::Done))
            }
            SessionRequest::HasCallback { name } => {
                let has_callback = self.has_session_callback(self.client_named(&name)?);
                Ok(Outcome::Now(Reply::Count(u32::from(has_callback))))
            }
            SessionRequest::Notify { target, kind, path } => {
                if path.is_empty() || path.len() > SESSION_PATH_BYTES || path.contains('\0') {
                    let reason =
                        format!("a session needs a directory, of at most {SESSION_PATH_BYTES} bytes");
                    return Err(RequestError::NotAllowed(reason));
                }
                if self.session.is_some() {
                    return Err(RequestError::Failed("another session is being saved".into()));
                }
                if let Some(name) = &target {
                    self.client_named(name)?;
                }
                Ok(Outcome::Session(Question { target, kind, path }))
            }
        }
    }

    fn client_named(&self, name: &str) -> Result<u32, RequestError> {
        let found = self.parts.model.clients().find(|client| client.name == name);
        found
            .map(|client| client.id)
            .ok_or_else(|| RequestError::NotAllowed(format!("there is no client '{name}'")))
    }

    fn has_session_callback(&self, client: u32) -> bool {
        let activation = self.clients.get(&client).and_then(|slot| slot.activation);
        activation.is_some_and(|activation| activation.session_callback)
    }

    /// Asks every client that has a session callback, or the one that is meant.
    pub(super) fn ask_session(&mut self, connection: u64, number: u32, question: Question) {
        let Question { target, kind, path } = question;
        let is_meant = |name: &str| target.as_ref().is_none_or(|target| target == name);
        let meant: Vec<u32> = self
            .parts
            .model
            .clients()
            .filter(|client| is_meant(&client.name) && self.has_session_callback(client.id))
            .map(|client| client.id)
            .collect();
        let mut waiting = BTreeMap::new();
        for client in meant {
            self.next_token += 1;
            let token = self.next_token;
            if let Some(slot) = self.clients.get_mut(&client) {
                slot.outbox.push(&Event::Session { kind, path: path.clone(), token });
                waiting.insert(client, token);
            }
        }
        let deadline_ns = now_ns() + SAVING_NS;
        let commands = Vec::new();
        self.session = Some(SessionPass { connection, number, waiting, commands, bytes: 0, deadline_ns });
        self.end_session_if_due();
    }

    /// A client has saved; its answer is in the list, unless it is none.
    pub(super) fn session_answered(&mut self, client: u32, token: u64, answer: SessionAnswer) {
        let Some(pass) = &mut self.session else { return };
        if pass.waiting.get(&client) != Some(&token) {
            return;
        }
        pass.waiting.remove(&client);
        let Some(client) = self.parts.model.client(client) else { return };
        let (uuid, name) = (client.uuid, client.name.clone());
        let bytes = name.len() + answer.command.len() + 32;
        if answer.command.len() <= SESSION_COMMAND_BYTES && pass.bytes + bytes <= COMMANDS_BYTES {
            pass.bytes += bytes;
            pass.commands.push(SessionCommand { uuid, client: name, answer });
        }
    }

    /// The client will not answer any more.
    pub(super) fn forget_in_session(&mut self, client: u32) {
        if let Some(pass) = &mut self.session {
            pass.waiting.remove(&client);
        }
    }

    /// Answers the session manager, when all clients have answered or their time is over.
    pub(super) fn end_session_if_due(&mut self) {
        let is_due = |pass: &mut SessionPass| pass.waiting.is_empty() || pass.deadline_ns <= now_ns();
        if let Some(pass) = self.session.take_if(is_due) {
            self.reply(pass.connection, pass.number, Reply::Session(pass.commands));
        }
    }
}
