//! Changes of the model, from which the registry and the clients' notifications follow.

use proto::property::PropertyChange;

/// One change, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A client opened.
    ClientOpened(u32),
    /// A client became active or inactive.
    ClientActivity(u32),
    /// A client closed; its ports were removed before.
    ClientClosed {
        /// Its id, which is free again.
        client: u32,
        /// The name that it had.
        name: String,
    },
    /// A port was registered.
    PortRegistered(u32),
    /// A port was removed; its connections were removed before.
    PortUnregistered {
        /// Its id.
        port: u32,
        /// Its client was active, so that other clients knew the port.
        announced: bool,
    },
    /// A port was renamed.
    PortRenamed {
        /// Its id.
        port: u32,
        /// Full name before.
        old: String,
        /// Full name now.
        new: String,
    },
    /// A port's aliases changed.
    PortAliases(u32),
    /// A port's number of monitor requests changed.
    PortMonitors(u32),
    /// A property was set or removed.
    Property {
        /// Uuid of what has it; 0: everything.
        subject: u64,
        /// Its key; empty: all properties of the subject.
        key: String,
        /// What happened.
        change: PropertyChange,
    },
    /// Two ports were connected.
    Connected {
        /// The output port.
        source: u32,
        /// The input port.
        destination: u32,
    },
    /// Two ports were disconnected.
    Disconnected {
        /// The output port.
        source: u32,
        /// The input port.
        destination: u32,
    },
}
