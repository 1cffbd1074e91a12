//! What the front end asks of a stream that records.

use client::stream::{Timing, Volume};

/// A stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewInput {
    /// Name of the program, for users.
    pub program: String,
    /// Name of what it records for, for users.
    pub name: String,
    /// Name of the device; `None`: the one that drives.
    pub device: Option<String>,
    /// What leaves the device, instead of what it captures.
    pub is_monitor: bool,
    /// All channels of that.
    pub channels: u32,
    /// How many frames may wait in the device and in the ring before some are lost.
    pub kept_frames: u32,
    /// The device may sleep while nothing else needs it, and there are no frames then.
    pub lets_sleep: bool,
    /// The account of its program.
    pub account: u32,
    /// The server's volume that it begins with.
    pub volume: Volume,
}

/// The program's end of a record stream: a ring. Positions count its frames.
pub(crate) trait Input {
    /// Returns the server's number of it; `None` if the server has no part in it.
    fn number(&self) -> Option<u32>;

    /// Returns the server's volume of it, also once it has ended.
    fn volume(&self) -> Volume;

    /// Reads the next frames, into a slice for each channel of the source; returns how many.
    fn read(&mut self, planes: &mut [&mut [f32]]) -> usize;

    /// Returns the position of the frame that is read next.
    fn position(&self) -> u64;

    /// Returns the bytes that this process keeps until they are read, besides its ring.
    fn kept_bytes(&self) -> usize {
        0
    }

    /// Has the device record, or hold; returns false if it can be asked for that later only.
    fn run(&mut self, runs: bool) -> bool;

    /// Has the device pass frames on each `frames` frames, or more often; returns false if it can
    /// be asked for that later only.
    fn set_interval(&mut self, frames: u32) -> bool;

    /// Returns which frame is recorded when.
    fn timing(&mut self) -> Timing;

    /// Returns when the device passes on the next frames, ns; `None` if that is not known.
    fn due_ns(&self) -> Option<u64>;

    /// Returns whether the server has ended it.
    fn has_ended(&self) -> bool;

    /// The server has ended it or has gone itself, as was noticed at `now_ns`. What was recorded
    /// can still be read.
    fn leave(&mut self, now_ns: u64);
}
