//! What a link's thread says about itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use sys::poll::Waker;

/// Written by the link's thread, read by the process's main thread, which it wakes.
#[derive(Debug)]
pub(crate) struct LinkState {
    plays: AtomicBool,
    locks: AtomicU64,
    gaps: AtomicU64,
    has_ended: AtomicBool,
    /// Why, if it is known.
    reason: OnceLock<String>,
    waker: Arc<Waker>,
}

impl LinkState {
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        Self {
            plays: AtomicBool::new(false),
            locks: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            reason: OnceLock::new(),
            waker,
        }
    }

    /// Returns another one that wakes the same thread, for what plays beside.
    pub(crate) fn beside(&self) -> Self {
        Self::new(Arc::clone(&self.waker))
    }

    pub(crate) fn set_plays(&self, plays: bool) {
        self.plays.store(plays, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(super) fn set_locks(&self, locks: u64) {
        if self.locks.swap(locks, Ordering::Relaxed) != locks {
            self.waker.wake();
        }
    }

    /// Counts a time when frames were not there when they had to be heard.
    pub(crate) fn note_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(super) fn end(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            let _ = self.reason.set(reason);
        }
        self.has_ended.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Returns it for users: whether it plays, and how often that was disturbed.
    pub(super) fn text(&self) -> String {
        let state = if self.plays.load(Ordering::Relaxed) { "plays" } else { "silent" };
        let gaps = self.gaps.load(Ordering::Relaxed);
        let locks = self.locks.load(Ordering::Relaxed);
        let starts = if locks > 0 { format!(", {locks} starts") } else { String::new() };
        format!("{state}, {gaps} gaps{starts}")
    }
}
