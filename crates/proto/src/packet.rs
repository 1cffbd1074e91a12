//! One message, one packet.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest packet that either side accepts; a longer one is refused before it is read.
pub const MAX_PACKET_BYTES: usize = 60 * 1024;

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not a message of this kind.
    #[error("{0} bytes are no message of this protocol")]
    Malformed(usize),
    /// A whole message, and then more.
    #[error("a message ends {0} bytes before its packet does")]
    TooLong(usize),
}

/// The packet of `message`.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    // Serializing into a growing vector fails only for types that postcard cannot describe (none of ours).
    postcard::to_allocvec(message).unwrap_or_default()
}

/// The message of `packet`, all of it.
pub fn decode<M: DeserializeOwned>(packet: &[u8]) -> Result<M, DecodeError> {
    match postcard::take_from_bytes(packet) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(DecodeError::TooLong(rest.len())),
        Err(_) => Err(DecodeError::Malformed(packet.len())),
    }
}
