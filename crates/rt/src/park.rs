//! How threads sleep and wake each other: by futexes between processes in production, by a model
//! under loom.

use core::num::NonZeroU32;

use crate::sync::AtomicU32;

/// Sleeps on words in shared memory, wakes threads that sleep there, and reads the clock that
/// bounds the sleep.
pub trait Park {
    /// Sleeps while `word` holds `expected`, until a wake-up whose mask has a bit in common with
    /// `mask`, and at most until `deadline_ns` (`CLOCK_MONOTONIC`; `None`: without a bound).
    ///
    /// May return early for any reason. The caller checks its condition again.
    fn wait_as(&self, mask: WakeMask, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>);

    /// Wakes at most `count` threads, of any process, that sleep on `word` with a mask that has a
    /// bit in common with `mask`.
    fn wake_only(&self, mask: WakeMask, word: &AtomicU32, count: u32);

    /// Returns `CLOCK_MONOTONIC` in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Sleeps like [`wait_as`](Self::wait_as), until any wake-up.
    #[inline]
    fn wait(&self, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
        self.wait_as(WakeMask::ALL, word, expected, deadline_ns);
    }

    /// Wakes like [`wake_only`](Self::wake_only), whatever the sleepers' masks.
    #[inline]
    fn wake(&self, word: &AtomicU32, count: u32) {
        self.wake_only(WakeMask::ALL, word, count);
    }
}

/// Selects sleepers on one word by their CPUs: the mask of `FUTEX_WAIT_BITSET` and
/// `FUTEX_WAKE_BITSET`.
///
/// A wake-up reaches every sleeper whose mask has a bit in common with its own. There is a bit for
/// each of 32 CPUs; on larger machines several CPUs share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeMask(NonZeroU32);

impl Default for WakeMask {
    fn default() -> Self {
        Self::ALL
    }
}

impl WakeMask {
    /// WakeMask on every CPU.
    pub const ALL: Self = Self(NonZeroU32::MAX);

    /// Selects the sleepers on one CPU.
    ///
    /// `None` means CPU 0, so that a mask and its [complement](Self::complement) together reach
    /// every sleeper that used this function exactly once.
    #[inline]
    #[must_use]
    pub fn for_cpu(cpu: Option<u32>) -> Self {
        NonZeroU32::new(1 << (cpu.unwrap_or(0) % u32::BITS)).map_or(Self::ALL, Self)
    }

    /// Selects the sleepers of both masks.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Selects all other sleepers; `None` if this mask selects all.
    #[inline]
    #[must_use]
    pub fn complement(self) -> Option<Self> {
        NonZeroU32::new(!self.0.get()).map(Self)
    }

    /// Returns one bit per CPU.
    #[inline]
    #[must_use]
    pub fn bits(self) -> NonZeroU32 {
        self.0
    }
}
