//! A ring of numbered entries: one thread writes, any process reads, and each entry is read whole
//! or not at all.

use crate::sync::{AtomicU64, Ordering, fence};

/// Entries that lie at their number modulo `ENTRIES`, each over the one that is `ENTRIES` older.
///
/// The writer may be hostile: a reader's result is then arbitrary words, or nothing.
#[repr(C)]
#[derive(Debug)]
pub struct NumberedRing<const ENTRIES: usize, const WORDS: usize> {
    entries: [Entry<WORDS>; ENTRIES],
}

#[repr(C)]
#[derive(Debug)]
struct Entry<const WORDS: usize> {
    /// 0 before the first write, and during each write.
    number: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const ENTRIES: usize, const WORDS: usize> Default for NumberedRing<ENTRIES, WORDS> {
    fn default() -> Self {
        Self {
            entries: core::array::from_fn(|_| Entry {
                number: AtomicU64::new(0),
                words: core::array::from_fn(|_| AtomicU64::new(0)),
            }),
        }
    }
}

impl<const ENTRIES: usize, const WORDS: usize> NumberedRing<ENTRIES, WORDS> {
    fn entry(&self, number: u64) -> &Entry<WORDS> {
        &self.entries[(number % ENTRIES as u64) as usize]
    }

    /// Writes entry `number`, which is not 0. Only one thread may call this. Thread: cycle.
    ///
    /// A reader of an entry that is written again under the same number may get words of both.
    pub fn write(&self, number: u64, words: &[u64; WORDS]) {
        let entry = self.entry(number);
        // MUTATION: numbered.old_entry_not_withdrawn
        entry.number.store(0, Ordering::Relaxed);
        // Release: a reader that sees one of the words below also sees that the older entry is
        // withdrawn.
        // MUTATION: numbered.writer_without_fence
        fence(Ordering::Release);
        for (place, word) in entry.words.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        // Release: a reader that sees the number sees all the words, and what came before them.
        // MUTATION: numbered.write_end_relaxed
        entry.number.store(number, Ordering::Release);
    }

    /// Leaves the place of entry `number` as a writer that dies while it writes it.
    #[cfg(all(test, not(loom)))]
    pub fn withdraw(&self, number: u64) {
        self.entry(number).number.store(0, Ordering::Relaxed);
    }

    /// Returns the number of the entry that lies where `number` belongs; 0 if there is none, or if
    /// it is being written. Thread: any.
    pub fn number_at(&self, number: u64) -> u64 {
        // Acquire: pairs with the end of the write.
        // MUTATION: numbered.read_start_relaxed
        self.entry(number).number.load(Ordering::Acquire)
    }

    /// Returns entry `number` if it has been written and not overwritten. Thread: any.
    pub fn get(&self, number: u64) -> Option<[u64; WORDS]> {
        if self.number_at(number) != number {
            return None;
        }
        let entry = self.entry(number);
        let words = core::array::from_fn(|word| entry.words[word].load(Ordering::Relaxed));
        // Acquire: pairs with the writer's fence; a word of a newer entry shows below that this one
        // is withdrawn.
        // MUTATION: numbered.reader_without_fence
        fence(Ordering::Acquire);
        // MUTATION: numbered.copy_not_checked
        let whole = entry.number.load(Ordering::Relaxed) == number;
        whole.then_some(words)
    }
}

/// A reader that gets each entry once, in the order of their numbers, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedCursor {
    next: u64,
    lost: u64,
}

impl Default for NumberedCursor {
    fn default() -> Self {
        Self { next: 1, lost: 0 }
    }
}

impl NumberedCursor {
    /// Returns the next entry and its number; `None` if there is none yet. Never waits. Thread:
    /// any.
    ///
    /// The numbers of a hostile writer may be any, but never lead back.
    pub fn next<const ENTRIES: usize, const WORDS: usize>(
        &mut self,
        ring: &NumberedRing<ENTRIES, WORDS>,
    ) -> Option<(u64, [u64; WORDS])> {
        let found = ring.number_at(self.next);
        let skipped = found.wrapping_sub(self.next);
        // Numbers wrap: those ahead are at most half of all away.
        if found == 0 || skipped.cast_signed() < 0 {
            return None;
        }
        self.lost = self.lost.saturating_add(skipped);
        self.next = found;
        // An entry that is overwritten meanwhile is lost with the next call.
        let words = ring.get(found)?;
        self.next = found.wrapping_add(1);
        Some((found, words))
    }

    /// Returns how many entries were overwritten before they were read.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_gets_every_entry_once_in_order() {
        let ring = NumberedRing::<4, 2>::default();
        let mut cursor = NumberedCursor::default();
        for number in 1..100 {
            assert_eq!(cursor.next(&ring), None);
            ring.write(number, &[number, number * 2]);
            assert_eq!(ring.get(number), Some([number, number * 2]));
            assert_eq!(cursor.next(&ring), Some((number, [number, number * 2])));
        }
        assert_eq!((cursor.next(&ring), cursor.lost()), (None, 0));
        assert_eq!((ring.get(95), ring.get(100)), (None, None), "overwritten, not yet written");
    }

    #[test]
    fn an_overtaken_cursor_resumes_at_a_newer_entry() {
        let ring = NumberedRing::<4, 1>::default();
        let mut cursor = NumberedCursor::default();
        (1..=10).for_each(|number| ring.write(number, &[number]));
        assert_eq!(cursor.next(&ring), Some((9, [9])));
        assert_eq!(cursor.next(&ring), Some((10, [10])));
        assert_eq!((cursor.next(&ring), cursor.lost()), (None, 8));
    }

    #[test]
    fn numbers_of_a_hostile_writer_never_lead_back() {
        let ring = NumberedRing::<4, 1>::default();
        let mut cursor = NumberedCursor { next: 6, lost: 0 };
        for (number, read) in [
            (2, None),
            (6 + (1 << 63), None),
            (u64::MAX / 2 - 1, Some((u64::MAX / 2 - 1, [7]))),
            (u64::MAX / 2 - 1, None),
        ] {
            ring.entries[(cursor.next % 4) as usize].number.store(number, Ordering::Relaxed);
            for entry in &ring.entries {
                entry.words[0].store(7, Ordering::Relaxed);
            }
            ring.entries[(number % 4) as usize].number.store(number, Ordering::Relaxed);
            assert_eq!(cursor.next(&ring), read, "{number}");
        }
        cursor.next = u64::MAX;
        ring.write(u64::MAX, &[1]);
        assert_eq!(cursor.next(&ring), Some((u64::MAX, [1])));
        assert_eq!(cursor.next(&ring), None, "after the last number there is no other");
    }
}
