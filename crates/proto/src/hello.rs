//! The first packet of a connection and its answer.

use serde::{Deserialize, Serialize};

use crate::packet::{DecodeError, decode, encode};
use crate::request::{POSITION_WORDS, RequestError};

/// Version of all messages but this one's first twelve bytes, which never change.
pub const PROTOCOL_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"consort\0";

/// What a program says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the shared memory's layouts that the program was built for.
    pub layout: u32,
    /// What it wants to be.
    pub role: Role,
}

/// What a program may be to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Looks and asks, has no ports: the command line.
    Observer,
    /// Has ports and runs in cycles.
    Client {
        /// The name it wants.
        name: String,
        /// Refuse rather than change the name.
        exact: bool,
        /// The uuid for which a session manager may have reserved a name.
        session: Option<u64>,
    },
    /// Was a client of a server of this name that is gone, and is one again: see [`Returning`].
    Returning(Returning),
}

/// A client that outlived its server. Its ports and connections follow as requests, up to
/// [`Request::Returned`](crate::request::Request::Returned).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returning {
    /// The id that it had.
    pub client: u32,
    /// The uuid that it had.
    pub uuid: u64,
    /// The name that it had.
    pub name: String,
    /// Which server it was a client of: one that closed it does not take it back.
    pub instance: u64,
    /// Its frame clock: this frame...
    pub frames: u64,
    /// ... passed at this date, `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
    /// The quantum that its program knows, in frames.
    pub quantum: u32,
    /// The rate that its program knows, in Hz.
    pub sample_rate_hz: u32,
    /// The largest id of a client that was in use: it may come back, too.
    pub last_client: u32,
    /// The largest id of a port that was in use.
    pub last_port: u32,
    /// Where the transport was; `None`: where it was from the start.
    pub transport: Option<Seen>,
}

/// The transport as a client saw it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// It rolled.
    pub rolls: bool,
    /// Where the next cycle would have begun: a position, packed as in shared memory.
    pub position: [u64; POSITION_WORDS],
}

/// The answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Welcome {
    /// Descriptors: engine, registry, recording.
    Observer,
    /// Descriptors: engine, registry, orders, own page, signal page, event socket. Also to one that returns.
    Client {
        /// The client's id.
        client: u32,
        /// The name that it has.
        name: String,
        /// The server's own name.
        server_name: String,
    },
    /// The server closes the connection after this.
    Refused(RequestError),
}

/// Why a first packet is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// Not a program of consort's.
    #[error("the first packet is not consort's: something else is speaking on this socket")]
    Foreign,
    /// Another version of the protocol.
    #[error(
        "the other side speaks version {0} of the protocol, this one version {PROTOCOL_VERSION}: install the server and libjack.so.0 of one release"
    )]
    Version(u32),
    /// The right version, and then nonsense.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

/// A first packet or its answer: the part that never changes, then the message.
pub fn encode_first<M: Serialize>(message: &M) -> Vec<u8> {
    let mut packet = MAGIC.to_vec();
    packet.extend(PROTOCOL_VERSION.to_le_bytes());
    packet.extend(encode(message));
    packet
}

/// Reads a first packet or its answer.
pub fn decode_first<M: serde::de::DeserializeOwned>(packet: &[u8]) -> Result<M, HelloError> {
    let rest = packet.strip_prefix(MAGIC).ok_or(HelloError::Foreign)?;
    let (version, message) = rest.split_first_chunk().ok_or(HelloError::Foreign)?;
    match u32::from_le_bytes(*version) {
        PROTOCOL_VERSION => Ok(decode(message)?),
        other => Err(HelloError::Version(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_versions_are_told_which_version_they_met() {
        let hello =
            Hello { layout: 1, role: Role::Client { name: "metro".into(), exact: false, session: None } };
        let packet = encode_first(&hello);
        assert_eq!(&packet[..12], b"consort\0\x01\0\0\0", "these bytes never change");
        assert_eq!(decode_first(&packet), Ok(hello));
        let mut newer = packet.clone();
        newer[8] = 9;
        newer.truncate(12);
        assert_eq!(decode_first::<Hello>(&newer), Err(HelloError::Version(9)));
        assert_eq!(decode_first::<Hello>(b"GET / HTTP/1.1"), Err(HelloError::Foreign));
        assert_eq!(decode_first::<Hello>(&packet[..10]), Err(HelloError::Foreign));
        assert!(matches!(decode_first::<Hello>(&packet[..14]), Err(HelloError::Malformed(_))));
    }
}
