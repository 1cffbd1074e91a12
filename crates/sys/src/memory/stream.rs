//! A program's playback stream, as the server has mapped it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rt::shm::{Miss, RingShape, Schedule, StreamPage, Timing, WishReader, WrittenFrames};
use rt::stream::Wish;

use super::population::PopulatedUntil;
use super::{PeerRing, RingNotLocked, RingPopulation, SegmentError, Shared};

/// The ring of a program, with its wishes, and the server's page about them.
///
/// The control thread receives and populates it; from the first piece on it belongs to the device's
/// thread.
#[derive(Debug)]
pub struct PeerStream {
    ring: PeerRing,
    page: Arc<Shared<StreamPage>>,
    reader: WishReader,
    written: WrittenFrames,
    populated: PopulatedUntil,
    lowest: u64,
    misses: u64,
}

impl PeerStream {
    /// Maps the ring that a program has sent for a stream of `shape`, and keeps its pages from
    /// being merged. `page` is the server's page, which is made before.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with the ring.
    pub fn receive(
        shape: RingShape,
        ring: OwnedFd,
        page: Arc<Shared<StreamPage>>,
    ) -> Result<Self, SegmentError> {
        let ring = PeerRing::receive(ring, shape)?;
        let (reader, written) = (WishReader::default(), WrittenFrames::default());
        let populated = PopulatedUntil::whole();
        Ok(Self { ring, page, reader, written, populated, lowest: 0, misses: 0 })
    }

    /// Returns it as the stream of a program that has played before: it begins at `position`, and
    /// nothing before that is read.
    #[must_use]
    pub fn beginning_at(mut self, position: u64) -> Self {
        self.lowest = position;
        self.written = WrittenFrames::starting_at(position);
        self.page.set_lowest(position);
        self.page.set_timing(Timing { position, until: position, ..Timing::default() });
        self
    }

    /// Keeps all pages in memory, and has the kernel count the whole ring as locked, which is
    /// [populated](Self::population) later.
    ///
    /// # Errors
    /// [`RingNotLocked`], with the size that would be possible. The stream works all the same.
    pub fn reserve(&self) -> Result<(), RingNotLocked> {
        self.page.lock().map_err(|source| RingNotLocked {
            bytes: self.ring.shape().bytes(),
            lockable: None,
            source,
        })?;
        self.ring.reserve()
    }

    /// Returns what there is to be populated of the ring of a stream with this rate, Hz. It is
    /// played as far as that has been done, so no access of a real-time thread faults. The ring's
    /// first page and the server's page are populated already.
    #[must_use]
    pub fn population(&self, rate_hz: u32) -> RingPopulation {
        self.ring.population(self.lowest, rate_hz, &self.populated)
    }

    /// Returns the shape of the ring.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.ring.shape()
    }

    /// Returns the server's page, for the ordinary thread that [kicks](StreamPage::kick) the
    /// program.
    #[must_use]
    pub fn page(&self) -> &Arc<Shared<StreamPage>> {
        &self.page
    }

    /// Returns the number of the next wish, each once and in their order, and the wish unless its
    /// words make no sense. Thread: cycle.
    pub fn next_wish(&mut self) -> Option<(u64, Option<Wish>)> {
        self.reader.next(self.ring.header().wishes())
    }

    /// States the device frame at which a wish takes effect; `None`: it is refused. Thread: cycle.
    pub fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        self.page.acknowledge(number, device_frame);
    }

    /// Returns the position up to which the program has written what can be read: never less than
    /// before, and no more than the ring holds. Thread: cycle.
    pub fn written(&mut self) -> u64 {
        let (header, capacity) = (self.ring.header(), self.ring.shape().capacity_frames());
        // MUTATION: stream.any_position_written
        let written = self.written.read(header, self.lowest, capacity);
        // MUTATION: stream.played_before_it_is_populated
        written.min(self.populated.position())
    }

    /// Copies samples of a channel, from `position` on, into private memory, at most the whole
    /// ring; silence follows. They may have any bits. Thread: cycle.
    #[inline]
    pub fn read(&self, channel: u32, position: u64, into: &mut [f32]) {
        self.ring.copy(channel, position, into);
    }

    /// States the lowest position that may be read again; one below the last has no effect. Thread:
    /// cycle.
    pub fn set_lowest(&mut self, position: u64) {
        if position > self.lowest {
            self.lowest = position;
            self.page.set_lowest(position);
        }
    }

    /// Notes frames that were not there when they had to be played. Thread: cycle.
    pub fn note_miss(&mut self, miss: Miss) {
        self.misses += 1;
        self.page.note_miss(self.misses, miss);
    }

    /// States what is heard when, and when more is needed. Thread: cycle.
    pub fn publish(&mut self, timing: Timing, schedule: Schedule) {
        self.page.set_timing(timing);
        self.page.set_schedule(schedule);
    }

    /// Returns how often the program has stated an impossible position, or overwritten a wish that
    /// was not read yet.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.written.faults().saturating_add(self.reader.lost())
    }
}

#[cfg(test)]
mod tests {
    use super::super::OwnRing;
    use super::*;

    #[test]
    fn a_stream_is_played_as_far_as_its_ring_is_populated() {
        let own = OwnRing::create(RingShape::new(2, 32768).unwrap()).unwrap();
        let ring = own.segment().fd().try_clone_to_owned().unwrap();
        let (page, _memfd) = Shared::for_readers("page").unwrap();
        let stream = PeerStream::receive(own.shape(), ring, Arc::new(page)).unwrap();
        let mut stream = stream.beginning_at(1000);
        own.header().publish(31_000);
        assert_eq!(stream.written(), 31_000);
        let mut population = stream.population(48_000);
        assert_eq!(stream.written(), 1000);
        for played in [4800, 4800 + 16_384] {
            assert!(!population.step().unwrap());
            assert_eq!(stream.written(), 1000 + played);
        }
        assert!(population.step().unwrap());
        assert_eq!(stream.written(), 31_000);
    }
}
