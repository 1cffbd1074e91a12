//! Internal clients: plug-ins, which the server runs in separate processes.

use serde::{Deserialize, Serialize};

/// A plug-in to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlugIn {
    /// The name of its client.
    pub name: String,
    /// Whether to fail instead of changing a name that is taken.
    pub exact: bool,
    /// File name in the server's plug-in directories, without extension.
    pub object: String,
    /// Parameters for the plug-in.
    pub parameters: String,
}

/// A request about internal clients. The comment names the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InternalRequest {
    /// Loads a plug-in. [`Reply::Internal`](crate::request::Reply::Internal), once it reports that
    /// it runs.
    Load(PlugIn),
    /// Unloads a plug-in. [`Reply::Done`](crate::request::Reply::Done), once its process has ended.
    Unload {
        /// Its handle.
        handle: u64,
    },
    /// Finds a plug-in by its client's name. [`Reply::Internal`](crate::request::Reply::Internal).
    Find {
        /// The name.
        name: String,
    },
    /// Finds a plug-in by its handle. [`Reply::Internal`](crate::request::Reply::Internal).
    Describe {
        /// The handle.
        handle: u64,
    },
}

/// Why a request about an internal client failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InternalFailure {
    /// No internal client has this name or handle.
    Unknown,
    /// The plug-in does not exist, or the file is not a plug-in.
    Load,
    /// Another client has the name.
    NameTaken,
    /// The plug-in failed to start or to end.
    Start,
}

/// A report of a plug-in's process to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostReport {
    /// The plug-in is a client of this name.
    Running {
        /// The name that the server has given it.
        name: String,
    },
    /// The plug-in failed, and the process ends.
    Failed {
        /// Kind of failure.
        failure: InternalFailure,
        /// The reason, for people.
        reason: String,
    },
}

/// A message of the server to a plug-in's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostRequest {
    /// Asks the plug-in to finish, and its process to end.
    Finish,
}
