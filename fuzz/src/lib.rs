//! What the fuzz targets of the wire formats have in common.
#![forbid(unsafe_code)]

use std::fmt::Debug;

use proto::hello::{decode_first, encode_first};
use proto::{decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Anything that decodes is a message: encoded again it decodes to the same, in at most as many
/// bytes.
pub fn message<M: Serialize + DeserializeOwned + Debug>(packet: &[u8]) {
    let Ok(message) = decode::<M>(packet) else { return };
    let written = encode(&message);
    assert!(written.len() <= packet.len(), "{message:?} grew");
    let again = decode::<M>(&written).unwrap_or_else(|error| panic!("{message:?}: {error}"));
    // Bytes, not values: a load may be NaN, which equals nothing.
    assert_eq!(encode(&again), written, "{message:?} became {again:?}");
}

/// Like [`message`], for the first packet of a connection and its answer.
pub fn first_packet<M: Serialize + DeserializeOwned + Debug>(packet: &[u8]) {
    let message = match decode_first::<M>(packet) {
        Ok(message) => message,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "a refusal says why");
            return;
        }
    };
    let written = encode_first(&message);
    assert!(written.len() <= packet.len(), "{message:?} grew");
    let again = decode_first::<M>(&written).unwrap_or_else(|error| panic!("{message:?}: {error}"));
    assert_eq!(encode_first(&again), written, "{message:?} became {again:?}");
}
