//! Sessions: a program asks others to save their state, and how to restart them.

use serde::{Deserialize, Serialize};

/// What a session manager asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// Save.
    Save,
    /// Save, and end.
    SaveAndQuit,
    /// Save without media files.
    SaveTemplate,
}

/// A client's answer to a session manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAnswer {
    /// `JackSessionFlags`: 1 if it could not save, 2 if its command needs a terminal.
    pub flags: u32,
    /// Command that restarts it; empty if it gave none.
    pub command: String,
}

/// A client's answer, as the session manager receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCommand {
    /// The client's uuid.
    pub uuid: u64,
    /// Its name.
    pub client: String,
    /// The answer.
    pub answer: SessionAnswer,
}

/// A request about sessions. The comment names the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionRequest {
    /// Asks all clients with a session callback, or one.
    /// [`Reply::Session`](crate::request::Reply::Session), when all have answered or their time is
    /// over.
    Notify {
        /// Name of the client; `None` for all.
        target: Option<String>,
        /// Kind of request.
        kind: SessionKind,
        /// The session's directory, in which each client gets a subdirectory.
        path: String,
    },
    /// Reserves a name for the client that opens with this uuid.
    /// [`Reply::Done`](crate::request::Reply::Done).
    Reserve {
        /// The name.
        name: String,
        /// The uuid.
        uuid: u64,
    },
    /// Asks whether the client has a session callback.
    /// [`Reply::Count`](crate::request::Reply::Count): 1 or 0.
    HasCallback {
        /// Its name.
        name: String,
    },
}
