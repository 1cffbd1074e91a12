//! External sync: the transport follows MIDI clock or MIDI time code, or sends it. What the bytes
//! mean is here, without ports; dates are frames of the server's clock, which wraps.

pub(crate) mod clock;
pub(crate) mod clock_sender;
pub(crate) mod time_code;
pub(crate) mod time_code_follower;
pub(crate) mod time_code_sender;

/// What a follower wants of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// That it rolls.
    Start,
    /// That it stands still.
    Stop,
    /// That it stands at this frame.
    Locate(u32),
}

/// MIDI's system messages that are about time.
pub(crate) mod status {
    /// A quarter of a frame of time code, with a piece of four bits.
    pub(crate) const QUARTER_FRAME: u8 = 0xF1;
    /// Song position in sixteenths, 14 bits, the low ones first.
    pub(crate) const SONG_POSITION: u8 = 0xF2;
    /// A 24th of a quarter note.
    pub(crate) const CLOCK: u8 = 0xF8;
    /// From the start.
    pub(crate) const START: u8 = 0xFA;
    /// From where it stands.
    pub(crate) const CONTINUE: u8 = 0xFB;
    /// Stand still.
    pub(crate) const STOP: u8 = 0xFC;
}
