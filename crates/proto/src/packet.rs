//! Encoding of one message as one packet.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest packet that either side accepts, bytes. A longer one is refused before it is read.
pub const MAX_PACKET_BYTES: usize = 60 * 1024;

/// Why bytes could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not a message of this kind.
    #[error("{0} bytes that are not a message of this protocol")]
    Malformed(usize),
    /// The bytes continue after a complete message.
    #[error("a message ends {0} bytes before its packet does")]
    TooLong(usize),
}

/// Encodes `message`.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    // Serializing into a growing vector fails only for types that postcard does not support, and no
    // message has one.
    postcard::to_allocvec(message).unwrap_or_default()
}

/// Decodes a message that occupies all of `packet`.
pub fn decode<M: DeserializeOwned>(packet: &[u8]) -> Result<M, DecodeError> {
    match postcard::take_from_bytes(packet) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(DecodeError::TooLong(rest.len())),
        Err(_) => Err(DecodeError::Malformed(packet.len())),
    }
}
