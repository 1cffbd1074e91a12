//! The hardware as a device's loop sees it.

use crate::planes::Planes;

/// Where the hardware was at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardPosition {
    /// The frame that the hardware reads next; those before cannot be changed.
    pub played: u64,
    /// When that was, `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
    /// How long a frame lasts, as measured, ps.
    pub frame_ps: u64,
}

/// A card that plays. Frames are counted from its first start on; while it is stopped, they stand.
/// Where nothing was written, it plays silence.
///
/// All methods are called by the device's thread. Thread: cycle.
pub trait Card {
    /// Returns how many frames its buffer holds; constant.
    fn buffer_frames(&self) -> u32;

    /// Returns how many frames after the hardware's position cannot be changed any more; constant.
    fn safety_frames(&self) -> u32;

    /// Returns where the hardware is.
    fn position(&mut self, now_ns: u64) -> CardPosition;

    /// Takes back the last `frames` frames; returns how many it really took back.
    fn rewind(&mut self, frames: u64) -> u64;

    /// Takes the frames from device frame `first` on.
    fn write(&mut self, first: u64, planes: &Planes);

    /// Starts playing what was written.
    fn start(&mut self, now_ns: u64);

    /// Stops after everything that was written has been played.
    fn stop(&mut self);
}
