//! What can go wrong between a program and its server.

use std::io;
use std::path::PathBuf;

use proto::hello::HelloError;
use proto::names::NameError;
use proto::request::RequestError;
use sys::memory::SegmentError;
use sys::runtime_directory::RuntimeDirectoryError;
use sys::socket::SocketError;

/// Why a call failed. Nothing was changed, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens on the server's socket.
    #[error("no server '{server}' is running (nothing listens at {}): start one with 'consort run -n {server}', or set JACK_DEFAULT_SERVER", path.display())]
    NoServer {
        /// The name that was looked for.
        server: String,
        /// Its control socket.
        path: PathBuf,
    },
    /// The server was to be started, and did not come up.
    #[error("cannot start a server with '{command}': {reason}")]
    NotStarted {
        /// The command line that was tried.
        command: String,
        /// What happened.
        reason: String,
    },
    /// The server understood, and said no.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// What answers is no server, or one of another release.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// A name that cannot be.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The server did not answer in time; it may still do what was asked.
    #[error(
        "the server did not answer within {seconds} s: it is overloaded or stopped; try again or restart it"
    )]
    Timeout {
        /// How long it was waited for.
        seconds: u64,
    },
    /// The connection to the server has ended: this client can only be closed.
    #[error("the server is gone: close this client and open a new one")]
    ServerGone,
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
    /// The process was forked after the client was opened: it belongs to the parent.
    #[error("the client belongs to the parent process: open a client after the fork, not before")]
    Forked,
    /// Called in a cycle, where nothing may wait.
    #[error("this call waits for the server and must not be made from the process callback")]
    InCycle,
    /// Called by what the program has run on the process thread before its first cycle.
    #[error(
        "this call waits for the activation that is under way, which waits for the callback that it is made from"
    )]
    Beginning,
    /// Called on an active client.
    #[error("callbacks cannot be set on an active client: deactivate it first")]
    Active,
    /// A port that this client does not have.
    #[error("this client has no port {0}")]
    NotOwnPort(u32),
    /// Ports that cannot be tied together.
    #[error("only an input can be tied to an output, and only to one of its own type")]
    NotTied,
    /// Too many threads of the client are in the middle of the same call.
    #[error("too many threads of this client move the transport at once: try again")]
    TransportBusy,
    /// The process thread did not start, or its initialization did not end in time.
    #[error("the process thread did not start: {0}")]
    ProcessThread(io::Error),
    /// The process thread of an earlier activation has not left the program's code, which must not run twice at once.
    #[error(
        "the process callback has not returned since the client was deactivated, and must not run twice at once: \
         activate the client when it has"
    )]
    ProcessRuns,
    /// Shared memory that cannot be had, or is not as it must be.
    #[error(transparent)]
    Memory(#[from] SegmentError),
    /// No directory for the server's socket.
    #[error(transparent)]
    Directory(#[from] RuntimeDirectoryError),
    /// The server's answer does not fit the question.
    #[error("the server broke the protocol: {0}; client and server are not of one release")]
    Protocol(&'static str),
    /// The socket failed.
    #[error("cannot speak with the server: {0}")]
    Socket(SocketError),
    /// The system refused a thread or a descriptor.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Error {
    /// For whoever asks and gets a reply that belongs to another kind of request.
    pub(crate) const OTHER_REPLY: Self = Self::Protocol("it answered with a reply of another request");
}
