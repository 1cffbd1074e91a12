//! What the threads of a device need to know about the graph, from the server's notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use client::{Notifications, Shutdown};

/// The newest notifications, written by the notification thread. Relaxed: neither value orders
/// other memory.
#[derive(Debug)]
pub(crate) struct GraphState {
    quantum: AtomicU32,
    has_left: AtomicBool,
}

impl GraphState {
    /// Returns the state of a graph whose quantum is `quantum`. A [`GraphListener`] keeps it up to
    /// date.
    pub(crate) fn new(quantum: u32) -> Arc<Self> {
        Arc::new(Self { quantum: AtomicU32::new(quantum), has_left: AtomicBool::new(false) })
    }

    /// Returns the graph's quantum. Latencies are requested before the first cycle of a new one.
    pub(crate) fn quantum(&self) -> u32 {
        self.quantum.load(Ordering::Relaxed)
    }

    /// Returns whether the server is gone for good.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }
}

/// Writes notifications to a [`GraphState`].
pub(crate) struct GraphListener(pub(crate) Arc<GraphState>);

impl Notifications for GraphListener {
    fn quantum(&mut self, frames: u32) {
        self.0.quantum.store(frames, Ordering::Relaxed);
    }

    fn shutdown(&mut self, _: &Shutdown) {
        self.0.has_left.store(true, Ordering::Relaxed);
    }
}
