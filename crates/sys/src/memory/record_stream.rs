//! A program's record stream: the server's ring, which the program reads.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rt::shm::{Miss, RingShape, Schedule, StreamPage, Timing, WishPage, WishReader};
use rt::stream::Wish;

use super::{OwnRing, RingNotLocked, SegmentError, Shared};

/// The server's ring and its page, and the wishes of the program.
///
/// The control thread makes and locks it; from then on it belongs to the device's thread.
#[derive(Debug)]
pub struct RecordStream {
    ring: OwnRing,
    wishes: Shared<WishPage>,
    page: Arc<Shared<StreamPage>>,
    reader: WishReader,
    misses: u64,
}

impl RecordStream {
    /// Makes the ring of a stream of `shape`, maps the wishes that a program has sent, and keeps
    /// the pages of both from being merged. `page` is the server's page, which is made before.
    /// Returns the descriptor of the ring, for the program.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with the wishes, or why there is no memory.
    pub fn create(
        shape: RingShape,
        wishes: OwnedFd,
        page: Arc<Shared<StreamPage>>,
    ) -> Result<(Self, OwnedFd), SegmentError> {
        let wishes = Shared::<WishPage>::receive(wishes)?;
        // MUTATION: record_stream.wishes_not_pinned
        wishes.mapping().pin();
        let ring = OwnRing::create(shape)?;
        // MUTATION: record_stream.ring_not_pinned
        ring.pin();
        let memfd = ring.segment().fd().try_clone_to_owned();
        let memfd = memfd
            .map_err(|source| SegmentError::Create { size_bytes: shape.bytes() as u64, source })?;
        Ok((Self { ring, wishes, page, reader: WishReader::default(), misses: 0 }, memfd))
    }

    /// Returns it as the stream of a program that has recorded before: its first frame has this
    /// position.
    #[must_use]
    pub fn beginning_at(self, position: u64) -> Self {
        self.ring.header().publish(position);
        self.page.set_timing(Timing { position, until: position, ..Timing::default() });
        self
    }

    /// Populates the ring and all pages and keeps them in memory, so that no access of a real-time
    /// thread ever faults.
    ///
    /// # Errors
    /// [`RingNotLocked`], with the size that would be possible. The stream works all the same.
    pub fn lock(&self) -> Result<(), RingNotLocked> {
        let pages = [self.wishes.lock(), self.page.lock()];
        pages.into_iter().collect::<Result<(), _>>().map_err(|source| RingNotLocked {
            bytes: self.ring.shape().bytes(),
            lockable: None,
            source,
        })?;
        self.ring.lock()
    }

    /// Populates the ring, where nothing is to be locked. Both pages are populated already.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.14; `ENOMEM`.
    pub fn populate(&self) -> std::io::Result<()> {
        self.ring.populate()
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
        self.reader.next(self.wishes.wishes())
    }

    /// States the device frame at which a wish takes effect; `None`: it is refused. Thread: cycle.
    pub fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        self.page.acknowledge(number, device_frame);
    }

    /// States that frames up to position `end` are written next, perhaps over older ones. Thread:
    /// cycle.
    pub fn begin(&mut self, end: u64) {
        self.ring.header().begin(end);
    }

    /// Writes samples of a channel from `position` on; of more than the ring holds, the last ones.
    /// Thread: cycle.
    pub fn write(&mut self, channel: u32, position: u64, samples: &[f32]) {
        let excess = samples.len().saturating_sub(self.shape().capacity_frames() as usize);
        let mut samples = &samples[excess..];
        let pieces = self.ring.samples_mut(channel, position + excess as u64, samples.len());
        for piece in pieces.into_iter().flatten() {
            let (now, later) = samples.split_at(piece.len().min(samples.len()));
            piece[..now.len()].copy_from_slice(now);
            samples = later;
        }
    }

    /// Publishes everything up to position `end`. Thread: cycle.
    pub fn finish(&mut self, end: u64) {
        self.ring.header().publish(end);
    }

    /// Notes frames that the device has lost. Thread: cycle.
    pub fn note_miss(&mut self, miss: Miss) {
        self.misses += 1;
        self.page.note_miss(self.misses, miss);
    }

    /// States what was heard when, and when more is there. Thread: cycle.
    pub fn publish(&mut self, timing: Timing, schedule: Schedule) {
        self.page.set_timing(timing);
        self.page.set_schedule(schedule);
    }
}

#[cfg(test)]
mod tests {
    use super::super::PeerRing;
    use super::*;

    #[test]
    fn a_program_reads_what_is_recorded_and_its_wishes_are_answered() {
        let shape = RingShape::new(2, 1024).unwrap();
        let (wishes, memfd) = Shared::<WishPage>::for_readers("consort-wishes").unwrap();
        let (page, page_memfd) = Shared::for_readers("page").unwrap();
        let (mut stream, ring) = RecordStream::create(shape, memfd, Arc::new(page)).unwrap();
        stream.populate().unwrap();
        let page = Shared::<StreamPage>::receive(page_memfd).unwrap();
        let ring = PeerRing::receive(ring, shape).unwrap();
        wishes.wishes().publish(1, Wish::Run);
        assert_eq!(stream.next_wish(), Some((1, Some(Wish::Run))));
        stream.acknowledge(1, Some(7));
        assert_eq!(page.acknowledgement(1), Some(rt::shm::Acknowledgement::At(7)));
        // Across the ring's end.
        let samples: Vec<f32> = (0..600).map(|sample| sample as f32).collect();
        for first in [0, 600] {
            stream.begin(first + 600);
            stream.write(0, first, &samples);
            stream.write(2, first, &samples);
            stream.finish(first + 600);
        }
        assert_eq!(ring.header().written(), 1200);
        let (mut left, mut right) = (vec![-1.0; 600], vec![-1.0; 600]);
        ring.copy(0, 600, &mut left);
        ring.copy(1, 600, &mut right);
        assert_eq!((left, right), (samples, vec![0.0; 600]));
        assert!(ring.header().is_intact(600, 1024) && !ring.header().is_intact(100, 1024));
        // More than the whole ring.
        let samples: Vec<f32> = (0..2500).map(|sample| sample as f32).collect();
        stream.begin(3700);
        stream.write(0, 1200, &samples);
        stream.finish(3700);
        let mut last = vec![-1.0; 1024];
        ring.copy(0, 3700 - 1024, &mut last);
        assert_eq!(last, samples[2500 - 1024..]);
    }
}
