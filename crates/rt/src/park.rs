//! How threads sleep and wake each other: by futexes between processes in production, by a model
//! under loom.

use crate::sync::AtomicU32;

/// Sleeps on words in shared memory, wakes threads that sleep there, and reads the clock that
/// bounds the sleep.
pub trait Park {
    /// Sleeps while `word` holds `expected`, until a wake-up, and at most until `deadline_ns`
    /// (`CLOCK_MONOTONIC`; `None`: without a bound).
    ///
    /// May return early for any reason. The caller checks its condition again.
    ///
    /// Every program that maps the word, even read-only, can take the sleeper away from it
    /// (`FUTEX_REQUEUE`): a later wake-up then does not find it. Only a deadline brings it back.
    fn wait(&self, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>);

    /// Sleeps like [`wait`](Self::wait), by a caller that does not rely on a wake-up: what it waits
    /// for is certain to have happened at `until_ns`, or is checked again then.
    fn wait_briefly(&self, word: &AtomicU32, expected: u32, until_ns: u64) {
        self.wait(word, expected, Some(until_ns));
    }

    /// Wakes at most `count` threads, of any process, that sleep on `word`.
    fn wake(&self, word: &AtomicU32, count: u32);

    /// Returns `CLOCK_MONOTONIC` in nanoseconds.
    fn now_ns(&self) -> u64;
}
