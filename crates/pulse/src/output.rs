//! What the front end asks of a server: a device, and streams on it.

use client::stream::{Gain, Timing, Volume, Wish};

use crate::input::{Input, NewInput};

/// What streams are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceFormat {
    /// Hz.
    pub rate_hz: u32,
    /// Channels, in ALSA's order.
    pub channels: u32,
    /// Channels that it captures, in the same order; 0: it captures nothing.
    pub captured: u32,
}

/// A stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewOutput {
    /// Name of the program, for users.
    pub program: String,
    /// Name of what is played, for users.
    pub name: String,
    /// How far ahead it may be rendered, frames.
    pub depth_frames: u32,
    /// The account of its program.
    pub account: u32,
}

/// A server's device.
pub(crate) trait Device {
    /// A stream that plays on it.
    type Output: Output;
    /// A stream that records it.
    type Input: Input;

    /// Returns what it plays; `None` as long as there is no server, or its device plays no streams.
    fn format(&self) -> Option<DeviceFormat>;

    /// Asks the server what it plays now.
    fn refresh(&mut self);

    /// Returns the volume of all that it plays.
    fn volume(&self) -> Volume;

    /// Changes its volume, as far as that is not `None`; returns false if the server refuses it.
    fn set_volume(&mut self, gain: Option<Gain>, muted: Option<bool>) -> bool;

    /// Opens a stream, which holds at position 0; `None` if the server refuses it.
    fn open(&mut self, new: NewOutput) -> Option<Self::Output>;

    /// Opens a stream that records, and holds at position 0; `None` if the server refuses it.
    fn record(&mut self, new: NewInput) -> Option<Self::Input>;
}

/// The program's end of a stream: a ring and wishes. Positions count its frames.
pub(crate) trait Output {
    /// Returns the most frames that it holds.
    fn capacity_frames(&self) -> u64;

    /// Returns how many frames can be written now.
    fn room(&self) -> usize;

    /// Writes frames at the end, a slice for each channel of the device; there is room for them.
    fn write(&mut self, planes: &[&[f32]]);

    /// Returns the position after the last frame that was written.
    fn written(&self) -> u64;

    /// States a wish, to be obeyed after [`commit`](Self::commit).
    fn wish(&mut self, wish: Wish);

    /// Makes the device obey the wishes so far.
    fn commit(&mut self);

    /// Returns whether the device knows all wishes so far.
    fn is_committed(&self) -> bool;

    /// Returns what is heard when.
    fn timing(&mut self) -> Timing;

    /// Returns when the device wakes next, ns; `None` if that is not known.
    fn wake_ns(&self) -> Option<u64>;

    /// Returns whether the server has ended it.
    fn has_ended(&self) -> bool;
}
