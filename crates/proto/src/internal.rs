//! Internal clients: plug-ins that the server has a process of its own run.

use serde::{Deserialize, Serialize};

/// What is asked about internal clients. The comment names the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InternalRequest {
    /// Loads one. [`Reply::Internal`](crate::request::Reply::Internal), once it says that it runs.
    Load {
        /// The client's name.
        name: String,
        /// Fail rather than change the name when it is taken.
        exact: bool,
        /// The plug-in: a file's name in the server's directories, without its end.
        object: String,
        /// For the plug-in.
        parameters: String,
    },
    /// Unloads one. [`Reply::Done`](crate::request::Reply::Done), once its process has ended.
    Unload {
        /// Its handle.
        handle: u64,
    },
    /// Finds one by its client's name. [`Reply::Internal`](crate::request::Reply::Internal).
    Find {
        /// The name.
        name: String,
    },
    /// Finds one by its handle. [`Reply::Internal`](crate::request::Reply::Internal).
    Describe {
        /// The handle.
        handle: u64,
    },
}

/// Why there is no such internal client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InternalFailure {
    /// None of this name or handle.
    Unknown,
    /// The plug-in is not there, or is none.
    Load,
    /// Another client has the name.
    NameTaken,
    /// The plug-in did not want to start, or did not come to its end.
    Start,
}

/// What a plug-in's process says to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostReport {
    /// The plug-in is a client of this name.
    Running {
        /// As the server gave it.
        name: String,
    },
    /// It is none, and the process ends.
    Failed {
        /// Of what kind.
        failure: InternalFailure,
        /// In words.
        reason: String,
    },
}

/// What the server says to a plug-in's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostOrder {
    /// The plug-in is to finish, and the process to end.
    Finish,
}
