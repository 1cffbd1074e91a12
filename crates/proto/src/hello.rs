//! The first packet on a control socket and its answer.

use serde::{Deserialize, Serialize};

use crate::packet::{DecodeError, decode, encode};
use crate::request::{POSITION_WORDS, RequestError};

/// Version of all messages. Only the first twelve bytes of the first packet never change.
pub const PROTOCOL_VERSION: u32 = 4;

const MAGIC: &[u8; 8] = b"consort\0";

/// What to do about a program and a server that are not of one release, after an error that names
/// both versions.
pub const OTHER_RELEASE: &str = "restart the older of the two; if both are new, install consort \
                                 and libjack.so.0 of one release";

/// The first message of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the shared memory's layouts for which the program was built.
    pub layout: u32,
    /// The role that the program asks for.
    pub role: Role,
}

/// The role of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Observes and sends requests, without ports, like the command line.
    Observer,
    /// Has ports and takes part in cycles.
    Client {
        /// The requested name.
        name: String,
        /// Whether to refuse the client instead of changing the name.
        exact: bool,
        /// The uuid for which a session manager may have reserved a name.
        session: Option<u64>,
    },
    /// Returns after its server is gone, to another one of the same name: see [`Returning`].
    Returning(Returning),
}

/// A client that outlived its server. Its ports and connections follow as requests, until
/// [`Request::Returned`](crate::request::Request::Returned).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returning {
    /// Its previous id.
    pub client: u32,
    /// Its previous uuid.
    pub uuid: u64,
    /// Its previous name.
    pub name: String,
    /// Instance of its previous server. A server that has closed the client does not take it back.
    pub instance: u64,
    /// Frame of its frame clock at `at_ns`.
    pub frames: u64,
    /// Time of frame `frames`, `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
    /// The quantum known to its program, in frames.
    pub quantum: u32,
    /// The sample rate known to its program, in Hz.
    pub sample_rate_hz: u32,
    /// The largest client id that was in use; that client may return too.
    pub last_client: u32,
    /// The largest port id that was in use.
    pub last_port: u32,
    /// State of the transport; `None` if it never changed.
    pub transport: Option<TransportSnapshot>,
}

/// The transport as a client last saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportSnapshot {
    /// Whether it rolled.
    pub rolls: bool,
    /// Position at which the next cycle would have begun, packed as in shared memory.
    pub position: [u64; POSITION_WORDS],
}

/// The answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Welcome {
    /// Accepts an observer. Descriptors: engine, registry, recording.
    Observer,
    /// Accepts a client, also a returning one. Descriptors: engine, registry, assignments, own
    /// page, signal page, event socket.
    Client {
        /// The client's id.
        client: u32,
        /// The client's actual name.
        name: String,
        /// The server's own name.
        server_name: String,
    },
    /// Refuses the program. The server closes the socket after this.
    Refused(RequestError),
}

/// Why a first packet was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The packet is not from a program of consort.
    #[error("the first packet is not consort's: something else is speaking on this socket")]
    Foreign,
    /// The packet has another version of the protocol.
    #[error(
        "the other side speaks version {0} of the protocol, this one version {PROTOCOL_VERSION}: \
         {OTHER_RELEASE}"
    )]
    Version(u32),
    /// The packet has the right version, but cannot be decoded.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

/// Encodes a first packet or its answer: the part that never changes, then the message.
pub fn encode_first<M: Serialize>(message: &M) -> Vec<u8> {
    let mut packet = MAGIC.to_vec();
    packet.extend(PROTOCOL_VERSION.to_le_bytes());
    packet.extend(encode(message));
    packet
}

/// Decodes a first packet or its answer.
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
    fn an_error_names_both_protocol_versions() {
        let hello = Hello {
            layout: 1,
            role: Role::Client { name: "metro".into(), exact: false, session: None },
        };
        let packet = encode_first(&hello);
        assert_eq!(&packet[..8], b"consort\0", "these bytes never change");
        assert_eq!(packet[8..12], PROTOCOL_VERSION.to_le_bytes(), "nor where these are");
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
