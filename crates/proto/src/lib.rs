//! The control protocol between programs and the server: messages and their encoding, without
//! sockets.
//!
//! Every message is one packet of a `SOCK_SEQPACKET` socket. The start of the first one, [`hello`],
//! is laid out by hand, so that programs of any version can refuse each other with an error
//! message. All else is [`postcard`] data. Memory is sent along with a packet as file descriptors,
//! in the order that the message documents.
#![forbid(unsafe_code)]

pub mod defaults;
pub mod driver;
pub mod event;
pub mod hello;
pub mod internal;
pub mod limits;
pub mod names;
pub mod port_flags;
pub mod property;
pub mod request;
pub mod session;
pub mod status;
pub mod stream;
pub mod timing;
pub mod xrun;

mod gain;
mod packet;
mod volume;

pub use packet::{DecodeError, MAX_PACKET_BYTES, decode, encode};
