//! The memory of a stream, as a device's thread uses it.

use rt::shm::{Miss, Schedule, Timing};
use rt::stream::Wish;

/// A wish as it was read, and its number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberedWish {
    /// Its number, for the acknowledgement.
    pub number: u64,
    /// `None`: what the program wrote makes no sense.
    pub wish: Option<Wish>,
}

/// A stream's ring and its pages. All methods are called by the device's thread. Thread: cycle.
pub trait StreamMemory {
    /// Returns the number of channels; constant.
    fn channels(&self) -> usize;

    /// Returns the next wish, each once and in their order.
    fn next_wish(&mut self) -> Option<NumberedWish>;

    /// States the device frame at which a wish takes effect; `None`: it is refused.
    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>);

    /// Returns the position up to which the program has written: never less than before.
    fn written(&mut self) -> u64;

    /// Copies samples of a channel, from `position` on, into private memory. They may have any
    /// bits, and anything where the program has not written.
    fn read(&self, channel: usize, position: u64, into: &mut [f32]);

    /// States the lowest position that may be read again.
    fn set_lowest(&mut self, position: u64);

    /// Notes frames that were not there when they had to be played.
    fn note_miss(&mut self, miss: Miss);

    /// States what is heard when, and when more is needed.
    fn publish(&mut self, timing: Timing, schedule: Schedule);
}
