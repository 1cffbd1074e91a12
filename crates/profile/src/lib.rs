//! The profiler: timing of every cycle of a server, live and from recordings.
//!
//! [`Profile`] is the command `consort profile`, [`Top`] is `consort top`, and [`ports`] is the
//! client that sends the measurements as signals, which is also the plug-in `profiler`.
#![forbid(unsafe_code)]

mod command;
mod draw;
mod file;
mod jack_log;
mod plots;
pub mod ports;
mod timeline;
mod top;
mod trace;

pub use command::Profile;
#[cfg(fuzzing)]
pub use command::read_recording;
pub use top::Top;
