//! How a cycle sleeps and wakes, as a trait: futexes between processes in production, a model under loom.

use core::num::NonZeroU32;

use crate::sync::AtomicU32;

/// Sleeping on a word that other processes change, and the clock that bounds it.
pub trait Park {
    /// Sleeps as one of `sleepers` while `word` holds `expected`, at most until `deadline_ns` (`CLOCK_MONOTONIC`; `None`: no
    /// bound).
    ///
    /// May return early for any reason; the caller checks what it waits for again.
    fn wait_as(&self, sleepers: Sleepers, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>);

    /// Wakes at most `count` of those threads, of whatever process, that sleep on `word`.
    fn wake_only(&self, sleepers: Sleepers, word: &AtomicU32, count: u32);

    /// `CLOCK_MONOTONIC` in nanoseconds.
    fn now_ns(&self) -> u64;

    /// As [`wait_as`](Self::wait_as), for whoever wakes anybody.
    #[inline]
    fn wait(&self, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
        self.wait_as(Sleepers::ALL, word, expected, deadline_ns);
    }

    /// As [`wake_only`](Self::wake_only), of all.
    #[inline]
    fn wake(&self, word: &AtomicU32, count: u32) {
        self.wake_only(Sleepers::ALL, word, count);
    }
}

/// Those who sleep on one word, told apart by their CPUs: a wake-up finds everybody with whom it has a CPU in common.
///
/// 32 CPUs are told apart; on larger machines, some count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleepers(NonZeroU32);

impl Default for Sleepers {
    fn default() -> Self {
        Self::ALL
    }
}

impl Sleepers {
    /// Wherever they are.
    pub const ALL: Self = Self(NonZeroU32::MAX);

    /// Those on one CPU. Who may be on any counts as on the first one: of some and [the others](Self::others), each
    /// sleeper that names its CPU so is one or the other, and not both.
    #[inline]
    #[must_use]
    pub fn on(cpu: Option<u32>) -> Self {
        NonZeroU32::new(1 << (cpu.unwrap_or(0) % u32::BITS)).map_or(Self::ALL, Self)
    }

    /// These and those.
    #[must_use]
    pub fn and(self, those: Self) -> Self {
        Self(self.0 | those.0)
    }

    /// Everybody else; `None` if these are all.
    #[inline]
    #[must_use]
    pub fn others(self) -> Option<Self> {
        NonZeroU32::new(!self.0.get()).map(Self)
    }

    /// A bit per CPU.
    #[inline]
    #[must_use]
    pub fn bits(self) -> NonZeroU32 {
        self.0
    }
}
