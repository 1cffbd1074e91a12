//! What the threads of a device want to know of the graph, as its server told it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use client::{Notifications, Shutdown};

/// Written by the notification thread. Nothing is ordered by either value.
#[derive(Debug)]
pub(crate) struct Told {
    quantum: AtomicU32,
    has_left: AtomicBool,
}

impl Told {
    /// Of a client that has this quantum now. A [`Listener`] keeps it up to date.
    pub(crate) fn new(quantum: u32) -> Arc<Self> {
        Arc::new(Self { quantum: AtomicU32::new(quantum), has_left: AtomicBool::new(false) })
    }

    /// The graph's quantum: latencies are asked for before the first cycle of a new one.
    pub(crate) fn quantum(&self) -> u32 {
        self.quantum.load(Ordering::Relaxed)
    }

    /// There is no server any more.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }
}

/// Has [`Told`] say what is so now.
pub(crate) struct Listener(pub(crate) Arc<Told>);

impl Notifications for Listener {
    fn quantum(&mut self, frames: u32) {
        self.0.quantum.store(frames, Ordering::Relaxed);
    }

    fn shutdown(&mut self, _: &Shutdown) {
        self.0.has_left.store(true, Ordering::Relaxed);
    }
}
