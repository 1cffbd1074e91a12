//! JACK's C interface: the functions of `libjack.so.0`.
//!
//! This crate checks and converts pointers and turns errors into C's numbers; all decisions are
//! made in the client crate. Names, prototypes and layouts are those of the headers in
//! `include/jack`, which also document each function and its thread. `abi/symbols.txt` lists the
//! exported symbols.
//!
//! Functions that need no server are implemented here: the ring buffer, uuids, metadata keys,
//! messages and the clock.

pub mod callbacks;
pub mod client;
pub mod clients;
pub mod connections;
pub mod convert;
pub mod deprecated;
pub mod internal;
pub mod latency;
pub mod library;
pub mod messages;
pub mod metadata;
pub mod metadata_keys;
pub mod midi;
pub mod monitor_requests;
pub mod names;
pub mod options;
pub mod own_loop;
mod pattern;
pub mod port;
pub mod ports;
pub mod ports_query;
pub mod ringbuffer;
pub mod session;
pub mod statistics;
pub mod thread;
pub mod time;
pub mod transport;
pub mod uuid;
#[cfg(target_arch = "x86")]
pub mod variadic_i386;
