//! External sync: the transport follows MIDI clock, MIDI time code or linear time code, or sends
//! it.
//!
//! [`Sync`] is the command `consort sync`, with its ports. The other modules interpret the bytes
//! and samples and know no ports; times are frames of the server's clock, which wraps.
#![forbid(unsafe_code)]

mod chase;
mod clock;
mod clock_sender;
mod command;
mod ltc;
mod time_code;
mod time_code_follower;
mod time_code_sender;

pub use command::Sync;

/// A change of the transport that a follower asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Move it to this frame.
    Locate(u32),
}

/// MIDI's system messages about time.
pub(crate) mod status {
    /// A quarter of a frame of time code, with a piece of four bits.
    pub(crate) const QUARTER_FRAME: u8 = 0xF1;
    /// Song position in sixteenths: 14 bits, low bits first.
    pub(crate) const SONG_POSITION: u8 = 0xF2;
    /// A 24th of a quarter note.
    pub(crate) const CLOCK: u8 = 0xF8;
    /// Start from the beginning.
    pub(crate) const START: u8 = 0xFA;
    /// Start from the current position.
    pub(crate) const CONTINUE: u8 = 0xFB;
    /// Stop.
    pub(crate) const STOP: u8 = 0xFC;
}
