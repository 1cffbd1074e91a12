//! How a cycle sleeps and wakes, as a trait: futexes between processes in production, a model under loom.

use crate::sync::AtomicU32;

/// Sleeping on a word that other processes change, and the clock that bounds it.
pub trait Park {
    /// Sleeps while `word` holds `expected`, at most until `deadline_ns` (`CLOCK_MONOTONIC`; `None`: no bound).
    ///
    /// May return early for any reason; the caller checks what it waits for again.
    fn wait(&self, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>);

    /// Wakes at most `count` threads, of whatever process, that sleep on `word`.
    fn wake(&self, word: &AtomicU32, count: u32);

    /// `CLOCK_MONOTONIC` in nanoseconds.
    fn now_ns(&self) -> u64;
}
