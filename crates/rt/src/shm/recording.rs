//! The recording: a ring of records of every cycle, which the server writes and any program reads.

use super::header::{Layout, SegmentHeader};
use crate::sync::{AtomicU64, Ordering, fence};

/// Words of a record: one cache line. Models use the fewest that can be torn.
pub const RECORD_WORDS: usize = if cfg!(loom) { 2 } else { 8 };

/// Records in a server's ring, 2 MiB: seven seconds of five clients at 64 frames and 48 kHz.
pub const RECORDS: usize = if cfg!(loom) { 2 } else { 32 * 1024 };

/// The recording of a server.
pub type Recording = RecordRing<RECORDS>;

same_for_all_widths!(Recording: 2101248 bytes; begun at 16, written at 24, slots at 64);

/// A ring of records that overwrites the oldest. One thread writes and never waits for a reader. A
/// reader gets complete records only, and knows how many it has missed.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug)]
pub struct RecordRing<const SLOTS: usize> {
    header: SegmentHeader,
    /// Records whose write has started, since the server started.
    begun: AtomicU64,
    /// Complete records, since the server started.
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

    /// Adds a record and overwrites the oldest one. Only one thread may call this. Thread: cycle.
    pub fn push(&self, words: &[u64; RECORD_WORDS]) {
        // Relaxed: only this thread writes the counts.
        let number = self.written.load(Ordering::Relaxed);
        let Some(slot) = self.slot(number) else { return };
        // MUTATION: recording.write_start_not_announced
        self.begun.store(number + 1, Ordering::Relaxed);
        // Release: a reader that sees one of the words below also sees that their write has
        // started.
        // MUTATION: recording.writer_without_fence
        fence(Ordering::Release);
        for (place, word) in slot.0.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        // Release: a reader that counts the record sees all its words.
        // MUTATION: recording.write_end_relaxed
        self.written.store(number + 1, Ordering::Release);
    }

    /// Returns the number of records written since the server started, one more than the newest
    /// record's number. Thread: any.
    pub fn written(&self) -> u64 {
        // Acquire: pairs with `push`.
        // MUTATION: recording.read_start_relaxed
        self.written.load(Ordering::Acquire)
    }

    /// Returns record `number` if it was written and not overwritten yet. Thread: any.
    pub fn get(&self, number: u64) -> Option<[u64; RECORD_WORDS]> {
        if number >= self.written() {
            return None;
        }
        let slot = self.slot(number)?;
        let words = core::array::from_fn(|word| slot.0[word].load(Ordering::Relaxed));
        // Acquire: pairs with the writer's fence; a word of a newer record shows below that its
        // write has started.
        // MUTATION: recording.reader_without_fence
        fence(Ordering::Acquire);
        let begun = self.begun.load(Ordering::Relaxed);
        (begun <= number.saturating_add(SLOTS as u64)).then_some(words)
    }
}

/// A reader's position in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordCursor {
    next: u64,
    /// Records that were overwritten before this reader read them.
    pub lost: u64,
}

impl RecordCursor {
    /// Starts at the oldest record in the ring.
    pub fn oldest<const SLOTS: usize>(ring: &RecordRing<SLOTS>) -> Self {
        Self { next: ring.written().saturating_sub(SLOTS as u64), lost: 0 }
    }

    /// Starts at the next record that is written.
    pub fn newest<const SLOTS: usize>(ring: &RecordRing<SLOTS>) -> Self {
        Self { next: ring.written(), lost: 0 }
    }

    /// Returns the next record; `None` if there is none yet. Never waits. Thread: any.
    pub fn next<const SLOTS: usize>(
        &mut self,
        ring: &RecordRing<SLOTS>,
    ) -> Option<[u64; RECORD_WORDS]> {
        // The second try is for a reader that is overtaken again after it has caught up.
        for _ in 0..2 {
            let written = ring.written();
            if self.next >= written {
                return None;
            }
            // Skips a quarter of the ring, so that the writer does not overtake the reader again at
            // once.
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
    fn a_reader_that_keeps_up_gets_every_record_in_order() {
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
    fn an_overtaken_reader_knows_how_much_it_has_lost() {
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
