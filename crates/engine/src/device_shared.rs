//! What a device's thread and the control thread share.

use proto::stream::DeviceState;
use rt::call::Call;
use rt::sync::{AtomicU32, Ordering};
use sys::clock::now_ns;
use sys::futex::Futex;

use crate::device_stream::SharedGain;
use crate::wake_ups::WakeUps;

/// What the thread of a device that plays streams and the control thread share.
#[derive(Debug)]
pub struct DeviceShared {
    /// Wakes the device's thread while it sleeps.
    pub call: Call,
    /// The gain of all that leaves the device. Control thread writes.
    pub gain: SharedGain,
    /// What the device does, and how often its thread has woken. Device's thread writes.
    pub wake_ups: WakeUps,
    /// 1: a further device is removed. Control thread writes.
    leaves: AtomicU32,
}

impl DeviceShared {
    /// Returns the state of a device whose thread does not run yet.
    #[must_use]
    pub fn new(state: DeviceState) -> Self {
        Self {
            call: Call::default(),
            gain: SharedGain::new(1.0),
            wake_ups: WakeUps::new(state, now_ns()),
            leaves: AtomicU32::new(0),
        }
    }

    /// Has the thread of a further device give everything back and end. Control thread.
    pub fn ask_to_leave(&self) {
        // Relaxed, here and below: the call orders it.
        self.leaves.store(1, Ordering::Relaxed);
        self.call();
    }

    /// Returns whether the thread of a further device is to end. Device's thread, after it has
    /// counted its calls. Thread: cycle.
    pub fn is_to_leave(&self) -> bool {
        self.leaves.load(Ordering::Relaxed) != 0
    }

    /// Calls the device's thread, after something was left for it. Thread: any.
    pub fn call(&self) {
        self.call.call(&Futex);
    }

    /// Notes what the device does; returns whether that is new. Device's thread. Thread: cycle.
    pub fn note_state(&self, state: DeviceState) -> bool {
        self.wake_ups.note_state(state, now_ns())
    }

    /// Returns what the device does. Thread: any.
    pub fn state(&self) -> DeviceState {
        self.wake_ups.state()
    }

    /// Counts a wake-up. Device's thread. Thread: cycle.
    pub fn note_wake_up(&self) {
        self.wake_ups.note(now_ns());
    }
}
