//! The recording: what every cycle was like, in a ring that the server writes and anybody reads.

use super::header::{Layout, SegmentHeader};
use crate::sync::{AtomicU64, Ordering, fence};

/// Words of a record: one cache line. In models as few as can be torn.
pub const RECORD_WORDS: usize = if cfg!(loom) { 2 } else { 8 };

/// Records that the ring of a server holds, 2 MiB: seven seconds of five clients at 64 frames and 48 kHz.
pub const RECORDS: usize = if cfg!(loom) { 2 } else { 32 * 1024 };

/// The recording of a server.
pub type Recording = RecordRing<RECORDS>;

/// A ring of records, overwritten for ever. One thread writes, and never waits for a reader; a reader sees whole
/// records only, and how many it has missed.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug)]
pub struct RecordRing<const SLOTS: usize> {
    header: SegmentHeader,
    /// Records whose writing has begun, since the server started.
    begun: AtomicU64,
    /// Records that are whole, since the server started.
    written: AtomicU64,
    slots: [Slot; SLOTS],
}

#[repr(C, align(64))]
#[derive(Debug)]
struct Slot([AtomicU64; RECORD_WORDS]);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl<const SLOTS: usize> Layout for RecordRing<SLOTS> {
    const KIND: u32 = 7;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl<const SLOTS: usize> Default for RecordRing<SLOTS> {
    fn default() -> Self {
        let ring = Self {
            header: SegmentHeader::default(),
            begun: AtomicU64::new(0),
            written: AtomicU64::new(0),
            slots: core::array::from_fn(|_| Slot(core::array::from_fn(|_| AtomicU64::new(0)))),
        };
        ring.header.initialize(Self::KIND);
        ring
    }
}

impl<const SLOTS: usize> RecordRing<SLOTS> {
    fn slot(&self, number: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(number % (SLOTS as u64)).ok()?)
    }

    /// Adds a record in the place of the oldest one. One thread only. Thread: cycle.
    pub fn push(&self, words: &[u64; RECORD_WORDS]) {
        // Relaxed: only this thread writes the counts.
        let number = self.written.load(Ordering::Relaxed);
        let Some(slot) = self.slot(number) else { return };
        self.begun.store(number + 1, Ordering::Relaxed);
        // Release: a reader that sees one of the words below also sees that their writing has begun.
        fence(Ordering::Release);
        for (place, word) in slot.0.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        // Release: whoever counts the record sees all its words.
        self.written.store(number + 1, Ordering::Release);
    }

    /// How many records were written since the server started; the newest is one less. Thread: any.
    pub fn written(&self) -> u64 {
        // Acquire: pairs with `push`.
        self.written.load(Ordering::Acquire)
    }

    /// Record `number`, if it is written and not overwritten yet. Thread: any.
    pub fn get(&self, number: u64) -> Option<[u64; RECORD_WORDS]> {
        if number >= self.written() {
            return None;
        }
        let slot = self.slot(number)?;
        let words = core::array::from_fn(|word| slot.0[word].load(Ordering::Relaxed));
        // Acquire: pairs with the writer's fence; a word of a newer record shows its beginning below.
        fence(Ordering::Acquire);
        let begun = self.begun.load(Ordering::Relaxed);
        (begun <= number.saturating_add(SLOTS as u64)).then_some(words)
    }
}

/// A reader's place in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordCursor {
    next: u64,
    /// Records that were overwritten before this reader had read them.
    pub lost: u64,
}

impl RecordCursor {
    /// From the oldest record that is still there.
    pub fn oldest<const SLOTS: usize>(ring: &RecordRing<SLOTS>) -> Self {
        Self { next: ring.written().saturating_sub(SLOTS as u64), lost: 0 }
    }

    /// From the next record on that is written.
    pub fn newest<const SLOTS: usize>(ring: &RecordRing<SLOTS>) -> Self {
        Self { next: ring.written(), lost: 0 }
    }

    /// The next record; `None`: there is none yet. Thread: any, never waits.
    pub fn next<const SLOTS: usize>(&mut self, ring: &RecordRing<SLOTS>) -> Option<[u64; RECORD_WORDS]> {
        // Once for a reader that was overtaken, once for one that is overtaken again meanwhile.
        for _ in 0..2 {
            let written = ring.written();
            if self.next >= written {
                return None;
            }
            // A quarter of the ring's room, so that the writer does not overtake it again at once.
            let oldest = written.saturating_sub(SLOTS as u64);
            if self.next < oldest {
                let resumed = oldest + (SLOTS as u64) / 4;
                self.lost += resumed - self.next;
                self.next = resumed;
            }
            if let Some(words) = ring.get(self.next) {
                self.next += 1;
                return Some(words);
            }
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_keeps_up_gets_every_record_once_and_in_order() {
        let ring = RecordRing::<8>::default();
        let mut cursor = RecordCursor::oldest(&ring);
        assert_eq!(cursor.next(&ring), None);
        for number in 0..100 {
            ring.push(&[number; RECORD_WORDS]);
            assert_eq!(cursor.next(&ring), Some([number; RECORD_WORDS]));
            assert_eq!(cursor.next(&ring), None);
        }
        assert_eq!(cursor.lost, 0);
    }

    #[test]
    fn a_reader_that_was_overtaken_goes_on_later_and_knows_how_much_it_has_lost() {
        let ring = RecordRing::<8>::default();
        let mut cursor = RecordCursor::oldest(&ring);
        (0..20).for_each(|number| ring.push(&[number; RECORD_WORDS]));
        let mut read = 0;
        let mut last = None;
        while let Some([number, ..]) = cursor.next(&ring) {
            assert!(last.is_none_or(|last| number == last + 1));
            (read, last) = (read + 1, Some(number));
        }
        assert_eq!((read + cursor.lost, last), (20, Some(19)));
        assert!(ring.get(11).is_none() && ring.get(12).is_some() && ring.get(20).is_none());
    }
}
