//! What a device's thread and the control thread share.

use proto::stream::DeviceState;
use rt::call::Call;
use rt::stream::Gains;
use rt::sync::{AtomicU32, AtomicU64, Ordering};
use sys::clock::now_ns;
use sys::futex::Futex;

use crate::wake_ups::WakeUps;

/// The gains of a device's channels, which the control thread sets and the device's thread reads.
#[derive(Debug)]
pub struct SharedGains([AtomicU32; Gains::CHANNELS]);

impl SharedGains {
    fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU32::new(1.0_f32.to_bits())))
    }

    /// Sets the factors; a call of the device's thread follows. Control thread.
    ///
    /// The device's thread may read some of them before: it moves to these, and to the others once
    /// it has read them.
    pub fn set(&self, factors: &[f32; Gains::CHANNELS]) {
        for (shared, factor) in self.0.iter().zip(factors) {
            // Relaxed, here and below: says nothing about other memory.
            shared.store(factor.to_bits(), Ordering::Relaxed);
        }
    }

    /// Returns the factor of a channel; of one beyond the last, that of the last. Thread: cycle.
    pub fn of(&self, channel: usize) -> f32 {
        f32::from_bits(self.0[channel.min(Gains::CHANNELS - 1)].load(Ordering::Relaxed))
    }

    /// Returns all factors. Thread: cycle.
    pub fn all(&self) -> Gains {
        Gains::new(core::array::from_fn(|channel| self.of(channel))).unwrap_or_default()
    }
}

/// Returns whether hardware is not there that was pulled out and plugged in as often as this.
pub fn is_missing(pluggings: u32) -> bool {
    !pluggings.is_multiple_of(2)
}

/// What the thread of a device that plays streams and the control thread share.
#[derive(Debug)]
pub struct DeviceShared {
    /// Wakes the device's thread while it sleeps.
    pub call: Call,
    /// The gains of all that leaves the device. Control thread writes.
    pub gains: SharedGains,
    /// What the device does, and how often its thread has woken. Device's thread writes.
    pub wake_ups: WakeUps,
    /// Frames that streams were to play and that were not rendered in time. Device's thread writes.
    lost_frames: AtomicU64,
    /// As many calls have been answered: what was left before them is done. Device's thread writes.
    answered_calls: AtomicU32,
    /// 1: a further device is removed. Control thread writes.
    leaves: AtomicU32,
    /// How often the hardware was pulled out or plugged in; odd while it is not there. Device's
    /// thread writes.
    pluggings: AtomicU32,
}

impl DeviceShared {
    /// Returns the state of a device whose thread does not run yet.
    #[must_use]
    pub fn new(state: DeviceState) -> Self {
        Self {
            call: Call::default(),
            gains: SharedGains::new(),
            wake_ups: WakeUps::new(state, now_ns()),
            lost_frames: AtomicU64::new(0),
            answered_calls: AtomicU32::new(0),
            leaves: AtomicU32::new(0),
            pluggings: AtomicU32::new(0),
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

    /// Notes whether the hardware is plugged in; returns whether that is new. Device's thread,
    /// which has given its streams back if it is not. Thread: cycle.
    pub fn note_unplugged(&self, is_unplugged: bool) -> bool {
        // Relaxed, here and below: says nothing about other memory.
        let pluggings = self.pluggings.load(Ordering::Relaxed);
        let is_new = is_missing(pluggings) != is_unplugged;
        if is_new {
            self.pluggings.store(pluggings.wrapping_add(1), Ordering::Relaxed);
        }
        is_new
    }

    /// Returns how often the hardware was pulled out or plugged in: see [`is_missing`]. Thread:
    /// any.
    pub fn pluggings(&self) -> u32 {
        self.pluggings.load(Ordering::Relaxed)
    }

    /// Counts frames that were not rendered in time. Device's thread. Thread: cycle.
    pub fn note_lost_frames(&self, lost: u64) {
        if lost > 0 {
            // Relaxed, here and below: says nothing about other memory.
            let before = self.lost_frames.load(Ordering::Relaxed);
            self.lost_frames.store(before.saturating_add(lost), Ordering::Relaxed);
        }
    }

    /// Returns how many frames were not rendered in time. Thread: any.
    pub fn lost_frames(&self) -> u64 {
        self.lost_frames.load(Ordering::Relaxed)
    }

    /// Notes that what was left before these calls is done. Device's thread. Thread: cycle.
    pub fn note_answered(&self, calls: u32) {
        // Release: pairs with `answered_calls`. A program that is kicked after that finds its
        // wishes acknowledged.
        self.answered_calls.store(calls, Ordering::Release);
    }

    /// Returns how many calls have been answered; wraps. Control thread.
    pub fn answered_calls(&self) -> u32 {
        self.answered_calls.load(Ordering::Acquire)
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
