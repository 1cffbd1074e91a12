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

    /// Returns the server's volume of the stream, a factor from 0 to
    /// [`MAX_GAIN`](rt::stream::MAX_GAIN). It may be another one each time.
    fn volume(&self) -> f32;

    /// Returns the position up to which the program has written: never less than before, nor than
    /// it had when it made the last wish that was returned.
    fn written(&mut self) -> u64;

    /// Copies samples of a channel, from `position` on, into private memory. They may have any
    /// bits, and anything where the program has not written.
    fn read(&self, channel: usize, position: u64, into: &mut [f32]);

    /// Returns whether programs of the graph hear a channel.
    fn is_heard(&self, channel: usize) -> bool;

    /// Passes a channel's samples of the coming cycle to these programs, from its frame `offset`
    /// on.
    fn hear(&mut self, channel: usize, offset: usize, samples: &[f32]);

    /// States the lowest position that may be read again.
    fn set_lowest(&mut self, position: u64);

    /// Notes frames that were not there when they had to be played.
    fn note_miss(&mut self, miss: Miss);

    /// States what is heard when, and when more is needed.
    fn publish(&mut self, timing: Timing, schedule: Schedule);
}

/// The ring and the pages of a stream that a device fills. All methods are called by the device's
/// thread. Thread: cycle.
pub trait RecordMemory {
    /// Returns the number of channels; constant.
    fn channels(&self) -> usize;

    /// Returns the next wish, each once and in their order.
    fn next_wish(&mut self) -> Option<NumberedWish>;

    /// States the device frame at which a wish takes effect; `None`: it is refused.
    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>);

    /// Returns the server's volume of the stream, as [`StreamMemory::volume`].
    fn volume(&self) -> f32;

    /// States that frames up to position `end` are written next, perhaps over older ones.
    fn begin(&mut self, end: u64);

    /// Writes samples of a channel from `position` on.
    fn write(&mut self, channel: usize, position: u64, samples: &[f32]);

    /// States that everything up to position `end` is written.
    fn finish(&mut self, end: u64);

    /// Notes frames that the device has lost.
    fn note_miss(&mut self, miss: Miss);

    /// States what was heard when, and when more is there.
    fn publish(&mut self, timing: Timing, schedule: Schedule);
}
