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
use crate::stream::{StreamReply, StreamRequest};
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
    /// Unregisters a port. [`Reply::Done`].
    UnregisterPort {
        /// Its id.
        port: u32,
    },
    /// Connects two ports, by name or alias. [`Reply::Done`].
    Connect {
        /// An output port.
        source: String,
        /// An input port.
        destination: String,
    },
    /// Disconnects two ports, by name or alias. [`Reply::Done`].
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
    /// Adds an alias to a port. [`Reply::Done`].
    SetAlias {
        /// Its id.
        port: u32,
        /// A full name.
        alias: String,
    },
    /// Removes an alias of a port. [`Reply::Done`].
    UnsetAlias {
        /// Its id.
        port: u32,
        /// The alias.
        alias: String,
    },
    /// Sets the latency of a port. [`Reply::Done`].
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
    /// Recomputes all latencies. [`Reply::Done`].
    RecomputeLatencies,
    /// Changes the quantum. [`Reply::Done`], once every client was notified and the driver runs it.
    SetQuantum {
        /// Frames.
        frames: u32,
    },
    /// Requests the given changes of the transport. [`Reply::Done`], before the cycle that decides
    /// them.
    Transport {
        /// Whether to start (true) or to stop.
        roll: Option<bool>,
        /// The position to go to, packed as in shared memory.
        position: Option<[u64; POSITION_WORDS]>,
        /// How long the transport waits for clients that need time, µs.
        sync_timeout_us: Option<u64>,
    },
    /// Becomes the timebase master. [`Reply::Done`].
    TakeTimebase {
        /// Whether to fail if there is a timebase master.
        conditional: bool,
    },
    /// Stops being the timebase master. [`Reply::Done`].
    ReleaseTimebase,
    /// Begins or ends freewheel. [`Reply::Done`], once every client was notified and the driver
    /// follows.
    SetFreewheel {
        /// Whether cycles follow each other without a pause; otherwise by the driver's clock.
        on: bool,
    },
    /// A request about properties of clients and ports, which documents its reply.
    Property(PropertyRequest),
    /// A request about sessions, which documents its reply.
    Session(SessionRequest),
    /// Requests that a port's input is heard at the device's output, or takes that back.
    /// [`Reply::Done`].
    Monitor {
        /// Its id.
        port: u32,
        /// Whether it is to be heard.
        on: bool,
        /// Whether to override earlier requests; otherwise requests are counted.
        ensure: bool,
    },
    /// Forgets the longest delay. [`Reply::Done`].
    ResetMaxDelay,
    /// Reads the status of the server. [`Reply::Status`].
    Status,
    /// Reads a client's durations. [`Reply::Timing`].
    Timing {
        /// Id of the client.
        client: u32,
    },
    /// Reads the oldest remembered xruns that are newer than `after`. [`Reply::Xruns`].
    Xruns {
        /// Number of an xrun; 0 is older than all.
        after: u64,
    },
    /// Stops the server. [`Reply::Done`].
    Stop,
    /// Closes the client. [`Reply::Done`]; the server closes the connection after it.
    Close,
    /// One of the ports of a client that returns. [`Reply::Done`].
    ReturnPort(ReturningPort),
    /// Sets the frame clock. [`Reply::Done`], once it has continued from the returning client's
    /// frame.
    ReturnClock,
    /// Connections of a client that returns. If the other end is not back yet, its client restores
    /// the connection. [`Reply::Done`].
    ReturnConnections(Vec<ReturningConnection>),
    /// Ends the return: from here on the client is like any other. [`Reply::Done`].
    Returned,
    /// A request about internal clients, which documents its reply.
    Internal(InternalRequest),
    /// Switches to another driver. [`Reply::Done`], once it starts the cycles.
    SwitchDriver(Box<DriverSwitch>),
    /// Reads the status of the clients with greater ids. [`Reply::Clients`].
    Clients {
        /// Id of a client, which may have gone.
        after: u32,
    },
    /// A request about streams. [`Reply::Stream`].
    Stream(StreamRequest),
}

/// Words of a packed position of the transport.
pub const POSITION_WORDS: usize = 11;

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The request has been carried out; the registry shows it.
    Done,
    /// The port's id.
    Port(u32),
    /// A property's value.
    Property(PropertyValue),
    /// Some properties, by subject and key.
    Properties {
        /// The properties, as many as fit.
        properties: Vec<Property>,
        /// Whether there are more after the last of these.
        more: bool,
    },
    /// The answers of the clients of a session.
    Session(Vec<SessionCommand>),
    /// The number of affected items.
    Count(u32),
    /// The status of the server.
    Status(Box<Status>),
    /// How long a client takes.
    Timing(Box<ClientTiming>),
    /// Xruns, oldest first. If there are many, only the first ones.
    Xruns(Vec<Xrun>),
    /// The request was refused, and nothing was changed.
    Error(RequestError),
    /// An internal client.
    Internal {
        /// Its handle, never 0.
        handle: u64,
        /// Its client's name.
        name: String,
    },
    /// The status of some clients, by id: [`CLIENTS_AT_ONCE`](crate::limits::CLIENTS_AT_ONCE), or
    /// fewer if there are no more.
    Clients(Vec<ClientStatus>),
    /// An answer about streams.
    Stream(StreamReply),
}

/// Why a request was refused. Nothing was changed in any case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RequestError {
    /// The packet is not a request.
    #[error("the server did not understand the message: {0}")]
    Malformed(String),
    /// Programs and server are from different releases.
    #[error("{0}")]
    Version(String),
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another client has the name.
    #[error("the name '{0}' is taken: choose another, or let the server number it")]
    NameTaken(String),
    /// There is no such port.
    #[error("there is no port '{name}'{}", nearest.as_ref().map(|name| format!(": did you mean '{name}'?")).unwrap_or_default())]
    UnknownPort {
        /// The requested name.
        name: String,
        /// The most similar name that exists.
        nearest: Option<String>,
    },
    /// There is no such client.
    #[error("there is no client {0}")]
    UnknownClient(u32),
    /// The port belongs to another client.
    #[error("port '{0}' belongs to another client")]
    NotYours(String),
    /// Source and destination are the wrong way round, or both the same.
    #[error(
        "'{port}' is not an {wanted} port: connections go from an output port to an input port"
    )]
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
    /// A limit of the server is reached.
    #[error("no room for another {what}: the limit is {limit}; {advice}")]
    Full {
        /// What the limit applies to.
        what: String,
        /// The limit.
        limit: u32,
        /// How to avoid or raise it.
        advice: String,
    },
    /// No buffer can hold this quantum.
    #[error("a quantum of {0} frames is out of range: {least} to {most}", least = QUANTUM_FRAMES.start(), most = QUANTUM_FRAMES.end())]
    Quantum(u32),
    /// The request was conditional, and there is a timebase master.
    #[error("'{0}' is already the timebase master")]
    TimebaseTaken(String),
    /// The client is not the timebase master.
    #[error("this client is not the timebase master")]
    NotTimebase,
    /// There is no such property, or it is not allowed.
    #[error("{0}")]
    Property(String),
    /// The driver does not support the request.
    #[error("{0}")]
    Driver(String),
    /// Memory that a client offered does not have the required form.
    #[error("the memory that was offered cannot be used: {0}")]
    Memory(String),
    /// Only clients, or only active ones, may send this request.
    #[error("{0}")]
    NotAllowed(String),
    /// The server is stopping, or could not do it in time.
    #[error("the server did not do it: {0}")]
    Failed(String),
    /// There is no such internal client, or it cannot be loaded.
    #[error("{reason}")]
    Internal {
        /// Kind of failure.
        failure: InternalFailure,
        /// The reason, for people.
        reason: String,
    },
}
