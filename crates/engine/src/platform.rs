//! What the server needs from the program that runs it: processes whose command lines and buses it
//! does not know.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use device::CardReservation;
use sys::helper::Helper;

use crate::priority_broker::PriorityBroker;

/// The implementations that the server uses.
pub struct Platform {
    /// Makes other sound servers release cards.
    pub cards: Arc<dyn CardReservation>,
    /// Gives real-time priorities where the kernel's limits do not.
    pub priorities: Box<dyn PriorityBroker>,
    /// Starts the processes of plug-ins.
    pub plugins: Box<dyn PluginLauncher>,
}

/// Starts a process for each plug-in.
pub trait PluginLauncher: Send {
    /// Starts a process that runs a plug-in as a client of a server. At the other end of `socket`
    /// it exchanges `proto::internal`'s messages with the server, and it ends with the server.
    ///
    /// # Errors
    /// The errors of starting a process.
    fn launch(&self, launch: &PluginLaunch<'_>, socket: OwnedFd) -> io::Result<Helper>;
}

/// A plug-in that is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginLaunch<'a> {
    /// Name of the server.
    pub server: &'a str,
    /// Name of the plug-in's client.
    pub client: &'a str,
    /// Fail rather than change the client's name if it is taken.
    pub exact: bool,
    /// The plug-in's file, without directory and extension.
    pub object: &'a str,
    /// Parameters for the plug-in.
    pub parameters: &'a str,
}
