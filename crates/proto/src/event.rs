//! Events that the server sends a client, and the client's answers, on the client's event socket.

use serde::{Deserialize, Serialize};

use crate::limits::SESSION_COMMAND_BYTES;
use crate::property::PropertyChange;
use crate::session::{SessionAnswer, SessionKind};

/// A message from the server. It never waits for a client: a client that does not read loses
/// events, and is notified of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Asks to map a follower's signal page as page `page`. One descriptor. [`Answer::Mapped`].
    MapSignals {
        /// Index by which assignments refer to it.
        page: u32,
        /// Token for the answer.
        token: u64,
    },
    /// Asks to map a signal page that will replace the client's own. One descriptor.
    /// [`Answer::Mapped`].
    MapOwnSignals {
        /// Number by which assignments refer to it, 0 or 1. They no longer refer to the page mapped
        /// there before.
        place: u32,
        /// Token for the answer.
        token: u64,
    },
    /// Asks to map a slab to read from as slab `slab`. One descriptor. [`Answer::Mapped`].
    MapSlab {
        /// Index by which assignments refer to it.
        slab: u32,
        /// Token for the answer.
        token: u64,
    },
    /// Allows to unmap a signal page: no assignment refers to it.
    UnmapSignals {
        /// Index of the page.
        page: u32,
    },
    /// Allows to unmap a slab: no assignment refers to it.
    UnmapSlab {
        /// Index of the slab.
        slab: u32,
    },
    /// A client was opened or closed.
    ClientRegistration {
        /// Name of the client.
        name: String,
        /// Whether it was opened.
        registered: bool,
    },
    /// A port was registered or unregistered.
    PortRegistration {
        /// Id of the port.
        port: u32,
        /// Whether it was registered.
        registered: bool,
    },
    /// A port was renamed.
    PortRename {
        /// Id of the port.
        port: u32,
        /// The previous full name.
        old: String,
        /// The new full name.
        new: String,
    },
    /// Two ports were connected or disconnected.
    Connection {
        /// Id of the output port.
        source: u32,
        /// Id of the input port.
        destination: u32,
        /// Whether they were connected.
        connected: bool,
    },
    /// The order of the clients changed.
    GraphOrder,
    /// A cycle was not finished in time.
    Xrun {
        /// How late it was, µs.
        delay_us: u32,
    },
    /// The next cycle has another quantum. [`Answer::Called`], when the program has been notified.
    Quantum {
        /// The quantum, frames.
        frames: u32,
        /// Token for the answer.
        token: u64,
    },
    /// Freewheel mode is about to begin or end. [`Answer::Called`], when the program has been
    /// notified.
    Freewheel {
        /// Whether it begins.
        on: bool,
        /// Token for the answer.
        token: u64,
    },
    /// Asks to compute the latencies of one direction. [`Answer::Called`].
    Latency {
        /// Whether from the capture side; otherwise to the playback side.
        capture: bool,
        /// Token for the answer.
        token: u64,
    },
    /// A property was set or removed.
    Property {
        /// Uuid of the subject; 0 for everything.
        subject: u64,
        /// The key; empty for all properties of the subject.
        key: String,
        /// Kind of change.
        change: PropertyChange,
    },
    /// Passes on the request of a session manager. [`Answer::Session`].
    Session {
        /// Kind of request.
        kind: SessionKind,
        /// The session's directory.
        path: String,
        /// Token for the answer.
        token: u64,
    },
    /// Events were lost because the client did not read. It has to read the graph again.
    Lost {
        /// Number of lost events.
        events: u32,
    },
    /// The server stops cleanly.
    Shutdown {
        /// The reason.
        reason: String,
    },
}

/// Longest answer, bytes.
pub const ANSWER_BYTES: usize = SESSION_COMMAND_BYTES + 64;

/// An answer from a client, at most [`ANSWER_BYTES`] long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The memory is mapped: assignments may refer to it.
    Mapped {
        /// Token of the event.
        token: u64,
    },
    /// The memory cannot be mapped: assignments must not refer to it.
    NotMapped {
        /// Token of the event.
        token: u64,
    },
    /// The callback has returned.
    Called {
        /// Token of the event.
        token: u64,
    },
    /// The program has done what the session manager requested.
    Session {
        /// Token of the event.
        token: u64,
        /// The program's answer.
        answer: SessionAnswer,
    },
}
