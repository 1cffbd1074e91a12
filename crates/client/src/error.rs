//! Errors of the client library.

use std::io;
use std::path::PathBuf;

use proto::hello::HelloError;
use proto::names::NameError;
use proto::request::RequestError;
use sys::memory::SegmentError;
use sys::runtime_directory::RuntimeDirectoryError;
use sys::socket::SocketError;

/// Why a call failed. A failed call has changed nothing, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No process listens on the server's socket.
    #[error("no server '{server}' is running (nothing listens at {}): start one with 'consort run -n {server}', or set JACK_DEFAULT_SERVER", path.display())]
    NoServer {
        /// The server's name.
        server: String,
        /// The path of its control socket.
        path: PathBuf,
    },
    /// A server was started for this client, and did not come up.
    #[error("cannot start a server with '{command}': {reason}")]
    NotStarted {
        /// The command line of the server.
        command: String,
        /// What went wrong.
        reason: String,
    },
    /// The server refused the request.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// The process at the other end is not a server, or one of another release.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// A name that is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The server did not answer in time. It may still carry out the request.
    #[error(
        "the server did not answer within {seconds} s: it is overloaded or stopped; try again or restart it"
    )]
    Timeout {
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The connection to the server has ended; the client can only be closed.
    #[error("the server is gone: close this client and open a new one")]
    ServerGone,
    /// The client has lost its server for good; it can only be closed.
    #[error("the server is gone: {0}")]
    Ended(String),
    /// The server is gone, and no other has replaced it within the grace period.
    #[error(
        "the server is gone, and no other replaced it within {seconds} s{}",
        refusal.as_deref().map(|refusal| format!(": {refusal}")).unwrap_or_default()
    )]
    NotReplaced {
        /// The grace period, in seconds.
        seconds: f32,
        /// Why the last server that was there did not take the program's streams back.
        refusal: Option<String>,
    },
    /// The server that follows one that has gone is no replacement for it.
    #[error("the next server cannot take the stream back: {0}")]
    OtherServer(String),
    /// The client has been closed.
    #[error("the client is closed")]
    Closed,
    /// The process was forked after the client was opened, and the client belongs to the parent.
    #[error("the client belongs to the parent process: open a client after the fork, not before")]
    Forked,
    /// The call was made in a cycle, where it must not wait.
    #[error("this call waits for the server and must not be made from the process callback")]
    InCycle,
    /// The call was made from the thread-init callback on the process thread, before its first
    /// cycle.
    #[error(
        "this call waits for the activation that is under way, which waits for the callback that it is made from"
    )]
    ThreadInit,
    /// The call needs an inactive client.
    #[error("callbacks cannot be set on an active client: deactivate it first")]
    Active,
    /// The port does not belong to this client.
    #[error("this client has no port {0}")]
    NotOwnPort(u32),
    /// The two ports cannot be tied.
    #[error("only an input can be tied to an output, and only to one of its own type")]
    CannotTie,
    /// Too many threads of the client are making this call at the same moment.
    #[error("too many threads of this client move the transport at once: try again")]
    TransportBusy,
    /// The process thread could not be started, or its initialization did not finish in time.
    #[error("the process thread did not start: {0}")]
    ProcessThread(io::Error),
    /// The process thread of an earlier activation is still in the program's callback, which must
    /// not run twice at once.
    #[error(
        "the process callback has not returned since the client was deactivated, and must not run twice at once: \
         activate the client when it has"
    )]
    ProcessCallbackRunning,
    /// Shared memory could not be obtained, or does not have the expected form.
    #[error(transparent)]
    Memory(#[from] SegmentError),
    /// There is no directory for the server's socket.
    #[error(transparent)]
    Directory(#[from] RuntimeDirectoryError),
    /// The server's answer does not fit the request.
    #[error("the server broke the protocol: {0}; client and server are not of one release")]
    Protocol(&'static str),
    /// The socket failed.
    #[error("cannot speak with the server: {0}")]
    Socket(SocketError),
    /// The system refused a thread or a file descriptor.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Error {
    /// The server answered with a reply that belongs to another kind of request.
    pub(crate) const OTHER_REPLY: Self =
        Self::Protocol("it answered with a reply of another request");

    /// Returns whether the server is of another release than this program, so that each further
    /// attempt of this process is refused as well. The next process of the program may be of that
    /// release, if the program was started before an update.
    #[must_use]
    pub fn is_of_other_release(&self) -> bool {
        matches!(
            self,
            Self::Refused(RequestError::Version(_)) | Self::Hello(HelloError::Version(_))
        )
    }

    /// Returns whether a program that returns from a server that has gone may succeed when it tries
    /// again.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::NoServer { .. }
                | Self::ServerGone
                | Self::Timeout { .. }
                | Self::Socket(_)
                | Self::System(_)
                | Self::Memory(_)
                | Self::Refused(RequestError::Failed(_))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_versions_alone_mean_another_release() {
        let version = || RequestError::Version("memory layout 8, this server 9".into());
        let others = [Error::Refused(version()), Error::Hello(HelloError::Version(9))];
        assert!(others.iter().all(Error::is_of_other_release));
        assert!(!others.iter().any(Error::may_pass));
        let refused = Error::Refused(RequestError::Failed("no memory".into()));
        for error in [refused, Error::ServerGone, Error::Timeout { seconds: 5 }] {
            assert!(!error.is_of_other_release(), "{error}");
        }
    }
}
