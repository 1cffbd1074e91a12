//! Sessions: a program asks others to save what they are at, and how to start them again.

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

/// A client's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAnswer {
    /// `JackSessionFlags`: 1 it could not save, 2 its command wants a terminal.
    pub flags: u32,
    /// How to start it again; empty: it did not say.
    pub command: String,
}

/// A client's answer, as the session manager sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCommand {
    /// The client's uuid.
    pub uuid: u64,
    /// Its name.
    pub client: String,
    /// What it answered.
    pub answer: SessionAnswer,
}

/// What is asked about sessions. The comment names the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionRequest {
    /// Asks all clients with a session callback, or one. [`Reply::Session`](crate::request::Reply::Session), when all
    /// have answered or their time is over.
    Notify {
        /// Its name; `None`: all.
        target: Option<String>,
        /// What for.
        kind: SessionKind,
        /// The session's directory, in which each client gets one of its own.
        path: String,
    },
    /// Keeps a name for the client that opens with this uuid. [`Reply::Done`](crate::request::Reply::Done).
    Reserve {
        /// The name.
        name: String,
        /// The uuid.
        uuid: u64,
    },
    /// Whether the client has a session callback. [`Reply::Count`](crate::request::Reply::Count): 1 or 0.
    HasCallback {
        /// Its name.
        name: String,
    },
}
