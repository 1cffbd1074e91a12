//! A sequence lock: several words that one thread writes and any process reads as one value.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// `N` words that are always read together, never partly old and partly new.
///
/// There is one writer. A reader never waits: during a write it tries a bounded number of times.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Snapshot<const N: usize> {
    /// Even while stable, odd during a write.
    sequence: AtomicU32,
    reserved: AtomicU32,
    words: [AtomicU64; N],
}

/// Tries of one [`Snapshot::read`]. A write takes some tens of nanoseconds, so one repetition is
/// rare, and this many mean that the writer was stopped during a write.
const TRIES: u32 = if cfg!(loom) { 2 } else { 64 };

impl<const N: usize> Default for Snapshot<N> {
    fn default() -> Self {
        Self {
            sequence: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl<const N: usize> Snapshot<N> {
    /// Replaces the value. Only one thread may call this.
    pub fn write(&self, value: &[u64; N]) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1) | 1, Ordering::Relaxed);
        // Release: a reader that sees one of the words below also sees the odd sequence above.
        // MUTATION: snapshot.writer_without_fence
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(value) {
            word.store(*value, Ordering::Relaxed);
        }
        // Release: a reader that sees the even sequence sees all the words.
        // MUTATION: snapshot.write_end_relaxed
        self.sequence.store((sequence.wrapping_add(1) | 1).wrapping_add(1), Ordering::Release);
    }

    /// Returns the newest complete value; `None` while the writer is stopped during a write.
    pub fn read(&self) -> Option<[u64; N]> {
        for _ in 0..TRIES {
            // Acquire: pairs with the writer's last store.
            // MUTATION: snapshot.read_start_relaxed
            let before = self.sequence.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let value = core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
                // Acquire: pairs with the writer's fence; a word of a newer value shows its odd
                // sequence below.
                // MUTATION: snapshot.reader_without_fence
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == before {
                    return Some(value);
                }
            }
            #[cfg(loom)]
            loom::thread::yield_now();
            #[cfg(not(loom))]
            core::hint::spin_loop();
        }
        None
    }
}
