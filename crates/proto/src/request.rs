//! Requests of a program and the server's replies: one reply to each request, in order.

use serde::{Deserialize, Serialize};

use crate::driver::DriverSwitch;
use crate::event::Event;
use crate::internal::{InternalFailure, InternalRequest};
use crate::limits::QUANTUM_FRAMES;
use crate::names::NameError;
use crate::property::{Property, PropertyRequest, PropertyValue};
use crate::session::{SessionCommand, SessionRequest};
use crate::status::{ClientStatus, Status};
use crate::timing::ClientTiming;
use crate::xrun::Xrun;

/// Type of a port's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PortType {
    /// 32-bit float samples, one buffer of a quantum's length.
    Audio,
    /// Timed MIDI events, one buffer of 32 KiB.
    Midi,
}

/// Location of an output port's buffer among its client's own slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlabSlot {
    /// Index of the slab, in the order in which they were added.
    pub slab: u32,
    /// Slot in the slab.
    pub slot: u32,
}

/// A port to register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPort {
    /// Short name: what follows the colon.
    pub name: String,
    /// Type of its data.
    pub port_type: PortType,
    /// Flags of [`port_flags`](crate::port_flags), or other `JackPortFlags`.
    pub flags: u32,
    /// The client's own number of the port, by which its assignments refer to it.
    pub number: u32,
    /// Location of its buffer; for outputs only.
    pub slot: Option<SlabSlot>,
}

/// A port of a returning client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturningPort {
    /// Its id.
    pub id: u32,
    /// The port as it was registered, or renamed since.
    pub port: NewPort,
    /// Its aliases.
    pub aliases: Vec<String>,
    /// Latency from the capture side: smallest and largest, frames.
    pub capture_latency: (u32, u32),
    /// Latency to the playback side: smallest and largest, frames.
    pub playback_latency: (u32, u32),
}

/// A connection of a returning client, by the names of its ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturningConnection {
    /// The output port.
    pub source: String,
    /// The input port.
    pub destination: String,
    /// Counts connections. Of two connections, the younger one closes a loop.
    pub age: u64,
}

/// Properties of a client that becomes active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Id of the process thread in the client's own pid namespace; `None` if it takes part in no
    /// cycle.
    pub process_thread: Option<u32>,
    /// Whether it computes its latencies itself.
    pub latency_callback: bool,
    /// Whether it is notified of a new quantum before the first cycle of that length.
    pub quantum_callback: bool,
    /// Whether it is notified of freewheel before its first cycle and after its last one.
    pub freewheel_callback: bool,
    /// Whether it is notified when a session is saved.
    pub session_callback: bool,
    /// Further events of which it is notified.
    pub interests: Interests,
}

/// The events that a client subscribes to. No event wakes a client whose program ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interests {
    /// Clients that are opened and closed.
    pub clients: bool,
    /// Ports that are registered and unregistered.
    pub ports: bool,
    /// Ports that are renamed.
    pub names: bool,
    /// Connections that are made and removed.
    pub connections: bool,
    /// A new order of the clients.
    pub order: bool,
    /// Cycles that were not finished in time.
    pub xruns: bool,
    /// Properties that are set and removed.
    pub properties: bool,
}

impl Interests {
    /// Everything.
    pub const ALL: Self = Self {
        clients: true,
        ports: true,
        names: true,
        connections: true,
        order: true,
        xruns: true,
        properties: true,
    };

    /// Returns whether to notify the client. It always gets events that need an answer or concern
    /// it alone.
    pub const fn include(self, event: &Event) -> bool {
        match event {
            Event::ClientRegistration { .. } => self.clients,
            Event::PortRegistration { .. } => self.ports,
            Event::PortRename { .. } => self.names,
            Event::Connection { .. } => self.connections,
            Event::GraphOrder => self.order,
            Event::Xrun { .. } => self.xruns,
            Event::Property { .. } => self.properties,
            Event::MapSignals { .. }
            | Event::MapOwnSignals { .. }
            | Event::MapSlab { .. }
            | Event::UnmapSignals { .. }
            | Event::UnmapSlab { .. }
            | Event::Quantum { .. }
            | Event::Freewheel { .. }
            | Event::Latency { .. }
            | Event::Session { .. }
            | Event::Lost { .. }
            | Event::Shutdown { .. } => true,
        }
    }
}

/// A request or its reply with the request's number, so that a reply that arrives after its sender
/// has given up is not taken for the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbered<M> {
    /// Number of the request on its socket.
    pub number: u32,
    /// The message.
    pub message: M,
}

/// A request. The comment names the reply; any request can be refused by [`Reply::Error`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Joins the cycles. [`Reply::Done`].
    Activate(Activation),
    /// Leaves the cycles, and removes all connections. [`Reply::Done`], once no cycle waits for the
    /// client.
    Deactivate,
    /// Registers a port. [`Reply::Port`].
    RegisterPort(NewPort),
    /// Adds a slab for the client's output buffers. One descriptor. [`Reply::Done`].
    AddSlab,
    /// [`Reply::Done`].
    UnregisterPort {
        /// Its id.
        port: u32,
    },
    /// By name or alias. [`Reply::Done`].
    Connect {
        /// An output port.
        source: String,
        /// An input port.
        destination: String,
    },
    /// By name or alias. [`Reply::Done`].
    Disconnect {
        /// An output port.
        source: String,
        /// An input port.
        destination: String,
    },
    /// Removes all connections of a port. [`Reply::Done`].
    DisconnectPort {
        /// Its id.
        port: u32,
    },
    /// Replaces what follows the first colon. [`Reply::Done`].
    RenamePort {
        /// Its id.
        port: u32,
        /// The new short name.
        name: String,
    },
    /// [`Reply::Done`].
    SetAlias {
        /// Its id.
        port: u32,
        /// A full name.
        alias: String,
    },
    /// [`Reply::Done`].
    UnsetAlias {
        /// Its id.
        port: u32,
        /// The alias.
        alias: String,
    },
    /// [`Reply::Done`].
    SetLatency {
        /// Its id.
        port: u32,
        /// From the capture side; otherwise to the playback side.
        capture: bool,
        /// Frames.
        min: u32,
        /// Frames.
        max: u32,
    },
    /// Computes all latencies anew. [`Reply::Done`].
    RecomputeLatencies,
    /// [`Reply::Done`], once every client was told and the driver runs it.
    SetQuantum {
        /// Frames.
        frames: u32,
    },
    /// Asks the transport for what is given. [`Reply::Done`], before the cycle that decides it.
    Transport {
        /// To start, or to stop.
        roll: Option<bool>,
        /// To go there: a position, packed as in shared memory.
        position: Option<[u64; POSITION_WORDS]>,
        /// How long the transport waits for clients that need time, µs.
        sync_timeout_us: Option<u64>,
    },
    /// Becomes the timebase master. [`Reply::Done`].
    TakeTimebase {
        /// Not if there is one.
        conditional: bool,
    },
    /// Is the timebase master no more. [`Reply::Done`].
    ReleaseTimebase,
    /// Cycles as fast as the graph can, or by the driver's clock. [`Reply::Done`], once every
    /// client was told and the driver does it.
    SetFreewheel {
        /// As fast as the graph can.
        on: bool,
    },
    /// About properties of clients and ports. The answer is its own.
    Property(PropertyRequest),
    /// About sessions. The answer is its own.
    Session(SessionRequest),
    /// Asks for a port's input to be heard at the device's output, or not any more.
    /// [`Reply::Done`].
    Monitor {
        /// Its id.
        port: u32,
        /// Heard.
        on: bool,
        /// Whatever others have asked for before; otherwise requests are counted.
        ensure: bool,
    },
    /// Forgets the longest delay. [`Reply::Done`].
    ResetMaxDelay,
    /// [`Reply::Status`].
    Status,
    /// [`Reply::Timing`].
    Timing {
        /// Id of the client.
        client: u32,
    },
    /// [`Reply::Xruns`]: the oldest ones that are remembered and newer than this.
    Xruns {
        /// Number of an xrun; 0 is older than all.
        after: u64,
    },
    /// Stops the server. [`Reply::Done`].
    Stop,
    /// Ends the client in order. [`Reply::Done`]; the server closes the connection after it.
    Close,
    /// One of the ports of a client that returns. [`Reply::Done`].
    ReturnPort(ReturningPort),
    /// [`Reply::Done`], once the frame clock has gone on from where the returning client stands.
    ReturnClock,
    /// Connections of a client that returns; those whose other end is not back are left to that
    /// end's client. [`Reply::Done`].
    ReturnConnections(Vec<ReturningConnection>),
    /// All has been said: from here on the client is like any other. [`Reply::Done`].
    Returned,
    /// About internal clients. The answer is its own.
    Internal(InternalRequest),
    /// Another driver. [`Reply::Done`], once it starts the cycles.
    SwitchDriver(Box<DriverSwitch>),
    /// [`Reply::Clients`]: those with greater ids.
    Clients {
        /// Id of a client, which need not be there any more.
        after: u32,
    },
}

/// Words of a packed position of the transport.
pub const POSITION_WORDS: usize = 11;

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It is done; whoever reads the registry sees it.
    Done,
    /// The port's id.
    Port(u32),
    /// A property's value.
    Property(PropertyValue),
    /// Some properties, by subject and key.
    Properties {
        /// As many as fit.
        properties: Vec<Property>,
        /// There are more after the last of these.
        more: bool,
    },
    /// What the clients of a session answered.
    Session(Vec<SessionCommand>),
    /// So many were concerned.
    Count(u32),
    /// How the server is.
    Status(Box<Status>),
    /// How long a client takes.
    Timing(Box<ClientTiming>),
    /// Xruns, oldest first; not all of them, if they are many.
    Xruns(Vec<Xrun>),
    /// Nothing was changed.
    Error(RequestError),
    /// An internal client.
    Internal {
        /// Its handle, never 0.
        handle: u64,
        /// Its client's name.
        name: String,
    },
    /// How some clients are, by id: [`CLIENTS_AT_ONCE`](crate::limits::CLIENTS_AT_ONCE), or fewer
    /// if there are no more.
    Clients(Vec<ClientStatus>),
}

/// Why a request was refused. Nothing was changed in any case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RequestError {
    /// A packet that is no request.
    #[error("the server did not understand the message: {0}")]
    Malformed(String),
    /// Programs and server are from different releases.
    #[error("{0}")]
    Version(String),
    /// A name that cannot be.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another client has it.
    #[error("the name '{0}' is taken: choose another, or let the server number it")]
    NameTaken(String),
    /// No such port.
    #[error("there is no port '{name}'{}", nearest.as_ref().map(|name| format!(": did you mean '{name}'?")).unwrap_or_default())]
    UnknownPort {
        /// What was asked for.
        name: String,
        /// The most similar name that exists.
        nearest: Option<String>,
    },
    /// No such client.
    #[error("there is no client {0}")]
    UnknownClient(u32),
    /// The port belongs to another client.
    #[error("port '{0}' belongs to another client")]
    NotYours(String),
    /// Source and destination are the wrong way round, or both the same.
    #[error("'{port}' is no {wanted} port: connections go from an output port to an input port")]
    WrongDirection {
        /// The port.
        port: String,
        /// "output" or "input".
        wanted: String,
    },
    /// Audio to MIDI, or MIDI to audio.
    #[error(
        "'{source_port}' and '{destination}' carry different types: audio and MIDI cannot be connected"
    )]
    TypeMismatch {
        /// The output port.
        source_port: String,
        /// The input port.
        destination: String,
    },
    /// An inactive client's ports cannot be connected.
    #[error("the client of port '{0}' is not active yet")]
    Inactive(String),
    /// The connection exists.
    #[error("'{source_port}' and '{destination}' are connected already")]
    AlreadyConnected {
        /// The output port.
        source_port: String,
        /// The input port.
        destination: String,
    },
    /// The connection does not exist.
    #[error("'{source_port}' and '{destination}' are not connected")]
    NotConnected {
        /// The output port.
        source_port: String,
        /// The input port.
        destination: String,
    },
    /// A limit of the server.
    #[error("no room for another {what}: the limit is {limit}; {advice}")]
    Full {
        /// What there is too much of.
        what: String,
        /// How many fit.
        limit: u32,
        /// How to raise it.
        advice: String,
    },
    /// A quantum that no port could hold.
    #[error("a quantum of {0} frames is out of range: {least} to {most}", least = QUANTUM_FRAMES.start(), most = QUANTUM_FRAMES.end())]
    Quantum(u32),
    /// Conditional, and there is one.
    #[error("'{0}' is the timebase master, and was not to be replaced")]
    TimebaseTaken(String),
    /// Only the master can give it back.
    #[error("this client is not the timebase master")]
    NotTimebase,
    /// There is no such property, or it cannot be.
    #[error("{0}")]
    Property(String),
    /// The driver cannot do it.
    #[error("{0}")]
    Driver(String),
    /// Memory that a client offered is not as it must be.
    #[error("the memory that was offered cannot be used: {0}")]
    Memory(String),
    /// Only clients may ask this, or only active ones.
    #[error("{0}")]
    NotAllowed(String),
    /// The server is going down or could not do it in time.
    #[error("the server did not do it: {0}")]
    Failed(String),
    /// There is no such internal client, or it cannot be loaded.
    #[error("{reason}")]
    Internal {
        /// Of what kind.
        failure: InternalFailure,
        /// In words.
        reason: String,
    },
}
