//! What the server tells a client, and what the client says back, on the client's event socket.

use serde::{Deserialize, Serialize};

use crate::limits::SESSION_COMMAND_BYTES;
use crate::property::PropertyChange;
use crate::session::{SessionAnswer, SessionKind};

/// From the server. Events never wait for a client: one that does not read loses them, and is told so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// One descriptor: a follower's signal page, to be kept as page `page`. [`Answer::Mapped`].
    MapSignals {
        /// Index by which orders name it.
        page: u32,
        /// For the answer.
        token: u64,
    },
    /// One descriptor: a signal page that will take the place of the client's own. [`Answer::Mapped`].
    MapOwnSignals {
        /// Which of its two places orders call it by, 0 or 1; what was there before is not named any more.
        place: u32,
        /// For the answer.
        token: u64,
    },
    /// One descriptor: a slab to read from, to be kept as slab `slab`. [`Answer::Mapped`].
    MapSlab {
        /// Index by which orders name it.
        slab: u32,
        /// For the answer.
        token: u64,
    },
    /// No order names the page any more.
    UnmapSignals {
        /// Its index.
        page: u32,
    },
    /// No order names the slab any more.
    UnmapSlab {
        /// Its index.
        slab: u32,
    },
    /// A client came or went.
    ClientRegistration {
        /// Its name.
        name: String,
        /// It came.
        registered: bool,
    },
    /// A port came or went.
    PortRegistration {
        /// Its id.
        port: u32,
        /// It came.
        registered: bool,
    },
    /// A port has a new name.
    PortRename {
        /// Its id.
        port: u32,
        /// The full name before.
        old: String,
        /// The full name now.
        new: String,
    },
    /// A connection came or went.
    Connection {
        /// Id of the output port.
        source: u32,
        /// Id of the input port.
        destination: u32,
        /// It came.
        connected: bool,
    },
    /// The order of the clients changed.
    GraphOrder,
    /// A cycle was not finished in time.
    Xrun {
        /// How late, in µs.
        delay_us: u32,
    },
    /// The next cycle has this length. [`Answer::Called`], when the program knows.
    Quantum {
        /// Frames.
        frames: u32,
        /// For the answer.
        token: u64,
    },
    /// Cycles are about to follow each other as fast as the graph can, or by the driver's clock again.
    /// [`Answer::Called`], when the program knows.
    Freewheel {
        /// As fast as the graph can.
        on: bool,
        /// For the answer.
        token: u64,
    },
    /// Compute the latencies of this direction. [`Answer::Called`].
    Latency {
        /// From the capture side; otherwise to the playback side.
        capture: bool,
        /// For the answer.
        token: u64,
    },
    /// A property was set or removed.
    Property {
        /// Uuid of what has it; 0: everything.
        subject: u64,
        /// Its key; empty: all properties of the subject.
        key: String,
        /// What happened.
        change: PropertyChange,
    },
    /// A session manager asks. [`Answer::Session`].
    Session {
        /// What for.
        kind: SessionKind,
        /// The session's directory.
        path: String,
        /// For the answer.
        token: u64,
    },
    /// The client did not read, and events were lost: what it knows is to be read again.
    Lost {
        /// How many.
        events: u32,
    },
    /// The server stops in order.
    Shutdown {
        /// Why.
        reason: String,
    },
}

/// The longest answer.
pub const ANSWER_BYTES: usize = SESSION_COMMAND_BYTES + 64;

/// From a client. At most [`ANSWER_BYTES`] long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The memory is mapped: orders may name it.
    Mapped {
        /// The event's.
        token: u64,
    },
    /// The memory cannot be mapped: orders must not name it.
    NotMapped {
        /// The event's.
        token: u64,
    },
    /// The callback has returned.
    Called {
        /// The event's.
        token: u64,
    },
    /// The program has done what a session manager asked.
    Session {
        /// The event's.
        token: u64,
        /// What it says.
        answer: SessionAnswer,
    },
}
