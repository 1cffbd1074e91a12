//! A call from other threads of a process to one that sleeps.

use crate::park::Park;
use crate::sync::{AtomicU32, Ordering};

/// A word in private memory on which one thread sleeps until another one calls.
///
/// The sleeper takes [`count`](Self::count), checks everything that a caller may have left for it,
/// and then sleeps only if there was no call since the count. Only this process maps the word, so
/// no other program can take the sleeper away, and the sleep needs no deadline of its own.
#[derive(Debug, Default)]
pub struct Call(AtomicU32);

impl Call {
    /// Returns the number of calls so far; wraps.
    pub fn count(&self) -> u32 {
        // Acquire: pairs with `call`. A sleeper that counts a call sees what its caller left.
        // MUTATION: call.count_relaxed
        self.0.load(Ordering::Acquire)
    }

    /// Calls the sleeper, after everything was left for it. Thread: any of the process.
    pub fn call(&self, park: &impl Park) {
        // Release: see `count`.
        // MUTATION: call.relaxed
        self.0.fetch_add(1, Ordering::Release);
        // MUTATION: call.not_woken
        park.wake(&self.0, 1);
    }

    /// Sleeps until there is a call after the `counted` ones, and at most until `deadline_ns`
    /// (`CLOCK_MONOTONIC`; `None`: without a bound). May return early.
    pub fn sleep(&self, counted: u32, deadline_ns: Option<u64>, park: &impl Park) {
        park.wait(&self.0, counted, deadline_ns);
    }
}
