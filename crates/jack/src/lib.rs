//! The C interface that JACK programs are linked with: what is in `libjack.so.0`.
//!
//! Here pointers are checked and converted, errors become C's numbers, and nothing is decided: that is the client
//! crate's part. Names, prototypes and layouts are those of the headers in `include/jack`, which also say what each
//! function does and in which thread it may be called; `abi/symbols.txt` lists the symbols that are exported.
//!
//! What needs no server is in this crate itself: the ring buffer, uuids, metadata keys, messages and the clock.

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
pub mod monitoring;
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
