//! Rings that are populated while their streams play: between events, a piece at a time, so that
//! nobody waits for a whole one.

use std::collections::VecDeque;

use sys::memory::{RingPopulation, SegmentError};

use super::{State, Streams};

/// For how long after a stream began other threads come first, ns. On a machine that is busy, each
/// piece would otherwise come later than what the device can play of those before it.
const GIVES_WAY_NS: u64 = 5_000_000;

/// What is left to populate of the rings of streams that have begun, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Populating {
    rings: VecDeque<Ring>,
}

#[derive(Debug)]
struct Ring {
    stream: u32,
    population: RingPopulation,
    begun_ns: u64,
}

impl Populating {
    /// Populates the first piece of the ring of a stream that begins now, so that it plays, and
    /// leaves the others to [`Streams::populate_next`].
    ///
    /// # Errors
    /// [`SegmentError`]: there is no memory.
    pub(super) fn begin(
        &mut self,
        stream: u32,
        mut population: RingPopulation,
        begun_ns: u64,
    ) -> Result<(), SegmentError> {
        if !population.step()? {
            self.rings.push_back(Ring { stream, population, begun_ns });
        }
        Ok(())
    }

    /// The stream has ended.
    pub(super) fn forget(&mut self, stream: u32) {
        self.rings.retain(|ring| ring.stream != stream);
    }

    /// Returns the streams whose rings are to be populated.
    #[cfg(test)]
    pub(super) fn streams(&self) -> Vec<u32> {
        self.rings.iter().map(|ring| ring.stream).collect()
    }
}

impl Streams {
    /// Whether there is anything to [populate](Self::populate_next).
    pub(in crate::control) fn are_populating(&self) -> bool {
        !self.populating.rings.is_empty()
    }

    /// Populates the next piece of a ring, if there is any. A stream for which there is no memory
    /// ends; the device of one whose ring is populated is called, as it may have played all that it
    /// could.
    pub(in crate::control) fn populate_next(&mut self, now_ns: u64) {
        let Some(mut ring) = self.populating.rings.pop_front() else { return };
        if now_ns < ring.begun_ns + GIVES_WAY_NS {
            // The kernel tends to wake this thread on the CPU of the program that asks, and leaves
            // that one there, runnable, as long as this thread does not sleep.
            std::thread::yield_now();
        }
        match ring.population.step() {
            Ok(false) => self.populating.rings.push_front(ring),
            Ok(true) => self.call_device_of(ring.stream),
            Err(error) => {
                sys::report!("consort: a stream that has just begun ends: {error}");
                self.end(ring.stream);
                self.watches.note_change();
            }
        }
    }

    fn call_device_of(&mut self, number: u32) {
        let begun = self.streams.get(&number);
        let begun = begun.filter(|stream| matches!(stream.state, State::Begun(_)));
        if let Some(device) = begun.and_then(|stream| self.devices.get_mut(stream.device)) {
            device.shared.call();
        }
    }
}
