//! Unix sockets that carry whole messages and descriptors (`SOCK_SEQPACKET`), and what is needed of
//! sockets that carry streams of bytes, or datagrams.

mod adopted;
mod connection;
mod datagrams;
mod listener;
mod name;
mod peer;
mod streams;

pub use adopted::adopt_streams;
pub use connection::{Connection, MAX_DESCRIPTORS, Received};
pub use datagrams::{receive_datagrams, send_datagrams};
pub use listener::Listener;
pub use name::is_dead;
pub use peer::{PeerCredentials, peer_of, process_of, security_label_of};
pub use streams::{
    listens_at, prepare_accepted, process_listening_at, receive_bytes, send_bytes, state_writer,
    take_over_listening,
};

use std::io;

use rustix::io::Errno;

/// Why a message was not sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The other end is gone.
    #[error("the other end has closed the connection")]
    Closed,
    /// Nothing to receive, or no room to send, until the deadline (or now, for the `try_` calls).
    #[error("the other end was not ready in time")]
    NotReady,
    /// Larger than the receive buffer, or than the kernel sends in one piece. The message is lost.
    #[error("the message is too long for one datagram or for the buffer")]
    TooLong,
    /// More than [`MAX_DESCRIPTORS`] came with the message. All are closed and the message is lost.
    #[error("the message carries more descriptors than fit")]
    TooManyDescriptors,
    /// Not all descriptors that were sent with the message have come: this process may open no
    /// more. Those that came are closed. The message is in the buffer.
    #[error("this process can open no more descriptors (ulimit -n)")]
    NoDescriptor {
        /// The length of the message in the buffer.
        bytes: usize,
    },
    /// An empty message cannot be distinguished from the end of the connection.
    #[error("an empty message cannot be sent")]
    Empty,
    /// Anything else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for SocketError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Self::Closed,
            Errno::WOULDBLOCK => Self::NotReady,
            Errno::MSGSIZE => Self::TooLong,
            errno => Self::Io(errno.into()),
        }
    }
}

impl From<SocketError> for io::Error {
    fn from(error: SocketError) -> Self {
        let kind = match error {
            SocketError::Io(error) => return error,
            SocketError::Closed => io::ErrorKind::BrokenPipe,
            SocketError::NotReady => io::ErrorKind::WouldBlock,
            SocketError::Empty => io::ErrorKind::InvalidInput,
            SocketError::TooLong
            | SocketError::TooManyDescriptors
            | SocketError::NoDescriptor { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
