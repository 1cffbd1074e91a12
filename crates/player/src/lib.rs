//! `consort play` and `consort record`: sound files as streams of a device.
//!
//! [`Play`] is the command. A file is decoded (`source`), converted to the device's rate and
//! channels, and written to the ring shortly before the device needs it (`playback`): with two
//! seconds queued, the program wakes less than once a second, whatever the graph does. [`Record`]
//! writes a file of what the device captures or plays. Both go on with the next server if theirs
//! dies (`server`).
#![forbid(unsafe_code)]

mod command;
mod delays;
mod pacing;
mod peaks;
mod playback;
mod progress;
mod record;
mod recording;
mod server;
mod source;

pub use command::Play;
pub use record::Record;
