//! Sleeps on a word of shared memory until a thread of any process wakes it.

use std::num::NonZeroU32;

use rt::park::Park;
use rt::sync::AtomicU32;
use rustix::thread::futex::{Flags, wait_bitset, wake_bitset};

use crate::clock;

/// The kernel's futexes, keyed by the memory itself and not by its address, so that every process
/// that maps the word, at whatever address, writable or not, uses the same one. Callable inside a
/// cycle.
///
/// Source: futex(2); `FUTEX_WAIT_BITSET`, whose timeout is absolute.
#[derive(Debug, Clone, Copy, Default)]
pub struct Futex;

/// Wakes, and is woken, whatever the other's bits.
const ANY: NonZeroU32 = NonZeroU32::MAX;

impl Park for Futex {
    #[inline]
    fn wait(&self, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
        let deadline = deadline_ns.map(clock::timespec);
        // Woken, already changed, interrupted or too late: the caller checks the word again in any
        // case.
        let _ = wait_bitset(word, Flags::empty(), expected, deadline.as_ref(), ANY);
    }

    #[inline]
    fn wake(&self, word: &AtomicU32, count: u32) {
        // The kernel reads the count as signed. It fails where the address is not mapped, and where
        // a program waits there for another kind of wake-up (`FUTEX_WAIT_REQUEUE_PI`): then the
        // sleepers behind that one are not woken, and their deadlines bring them back.
        let _ = wake_bitset(word, Flags::empty(), count.min(i32::MAX as u32), ANY);
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::memory::{Mapping, Prefault, Segment};

    const MINUTE_NS: u64 = 60_000_000_000;

    fn word(mapping: &Mapping) -> &AtomicU32 {
        // SAFETY: the mapping is page-aligned, larger than a word, and lives as long as the
        // reference.
        unsafe { &*mapping.base().as_ptr().cast::<AtomicU32>() }
    }

    #[test]
    fn a_wait_on_a_read_only_mapping_is_woken_through_another_mapping() {
        let segment = Segment::create("futex", 4096).unwrap();
        let waiting = Mapping::read_only(&segment, Prefault::Now).unwrap();
        let waking = Mapping::read_write(&segment, Prefault::Now).unwrap();
        assert_ne!(waiting.base(), waking.base());
        let deadline_ns = clock::now_ns() + MINUTE_NS;
        let woken = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                Futex.wait(word(&waiting), 0, Some(deadline_ns));
                woken.store(true, Ordering::Release);
            });
            // The word keeps its value, so that only the wake-up can end the wait before its
            // deadline.
            while !woken.load(Ordering::Acquire) {
                Futex.wake(word(&waking), 1);
                std::thread::yield_now();
            }
        });
        assert!(clock::now_ns() < deadline_ns);
    }

    #[test]
    fn a_word_that_has_changed_already_is_not_waited_for() {
        Futex.wait(&AtomicU32::new(1), 0, None);
    }

    #[test]
    fn a_wait_ends_at_its_absolute_deadline() {
        let deadline_ns = Futex.now_ns() + 3_000_000;
        let word = AtomicU32::new(0);
        while Futex.now_ns() < deadline_ns {
            Futex.wait(&word, 0, Some(deadline_ns));
        }
        Futex.wait(&word, 0, Some(0));
    }

    #[test]
    fn a_wake_up_of_all_reaches_every_sleeper() {
        const SLEEPERS: usize = 4;
        let word = AtomicU32::new(0);
        let deadline_ns = clock::now_ns() + MINUTE_NS;
        let ended = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..SLEEPERS {
                scope.spawn(|| {
                    Futex.wait(&word, 0, Some(deadline_ns));
                    ended.fetch_add(1, Ordering::Release);
                });
            }
            while ended.load(Ordering::Acquire) < SLEEPERS as u32 {
                Futex.wake(&word, u32::MAX);
                std::thread::yield_now();
            }
        });
        assert!(clock::now_ns() < deadline_ns);
    }
}
