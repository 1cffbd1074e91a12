//! How often the thread of a device wakes, counted without a timer of its own.

use proto::stream::{DeviceState, WakeUpRate};
use rt::sync::{AtomicU32, AtomicU64, Ordering};

/// Wake-ups whose times are remembered.
const REMEMBERED: u64 = 64;
/// The longest time over which a rate is taken, ns.
const LONGEST_NS: u64 = 10_000_000_000;
/// The shortest: a single wake-up is no rate.
const SHORTEST_NS: u64 = 1_000_000_000;

/// What the device does, and when its thread has woken. The device's thread writes, the control
/// thread reads; no reader draws a conclusion about other memory from it, so all accesses are
/// Relaxed.
#[derive(Debug)]
pub struct WakeUps {
    /// A [`DeviceState`].
    state: AtomicU32,
    /// Since when.
    since_ns: AtomicU64,
    /// How often the thread has woken.
    count: AtomicU64,
    /// When: wake-up `n` at `n % REMEMBERED`.
    at_ns: [AtomicU64; REMEMBERED as usize],
}

impl WakeUps {
    /// Starts with a device that does this.
    pub fn new(state: DeviceState, now_ns: u64) -> Self {
        Self {
            state: AtomicU32::new(state as u32),
            since_ns: AtomicU64::new(now_ns),
            count: AtomicU64::new(0),
            at_ns: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Notes what the device does; returns whether that is new. Device's thread.
    pub fn note_state(&self, state: DeviceState, now_ns: u64) -> bool {
        let is_new = self.state.swap(state as u32, Ordering::Relaxed) != state as u32;
        if is_new {
            self.since_ns.store(now_ns, Ordering::Relaxed);
        }
        is_new
    }

    /// Returns what the device does. Thread: any.
    pub fn state(&self) -> DeviceState {
        let state = self.state.load(Ordering::Relaxed);
        let states = [DeviceState::Deep, DeviceState::Parked];
        states.into_iter().find(|other| *other as u32 == state).unwrap_or(DeviceState::Cycling)
    }

    /// Notes a wake-up. Device's thread. Thread: cycle.
    pub fn note(&self, now_ns: u64) {
        let before = self.count.load(Ordering::Relaxed);
        self.at_ns[(before % REMEMBERED) as usize].store(now_ns, Ordering::Relaxed);
        self.count.store(before.wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns how often the thread has woken. Thread: any.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns how often it has woken lately, since the device does what it does now. Thread: any.
    pub fn rate(&self, now_ns: u64) -> WakeUpRate {
        let since_ns = self.since_ns.load(Ordering::Relaxed).max(now_ns.saturating_sub(LONGEST_NS));
        let known = self.count().min(REMEMBERED) as usize;
        let times = self.at_ns[..known].iter().map(|at_ns| at_ns.load(Ordering::Relaxed));
        let times = times.filter(|at_ns| (since_ns..=now_ns).contains(at_ns));
        let (count, oldest_ns) =
            times.fold((0, now_ns), |(count, oldest_ns), at_ns| (count + 1, oldest_ns.min(at_ns)));
        if count == REMEMBERED as u32 {
            // There may have been more before: the others are those since the oldest.
            let over_ns = now_ns.saturating_sub(oldest_ns).max(1);
            return WakeUpRate { wake_ups: count - 1, over_ns };
        }
        let over_ns = now_ns.saturating_sub(since_ns).max(SHORTEST_NS);
        WakeUpRate { wake_ups: count, over_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn woken(times_ns: impl IntoIterator<Item = u64>) -> WakeUps {
        let wake_ups = WakeUps::new(DeviceState::Cycling, 0);
        times_ns.into_iter().for_each(|at_ns| wake_ups.note(at_ns));
        wake_ups
    }

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds() {
        let wake_ups = woken((1..=20).map(|second| second * 2 * S));
        assert_eq!(wake_ups.rate(41 * S), WakeUpRate { wake_ups: 5, over_ns: 10 * S });
        assert_eq!(wake_ups.rate(60 * S), WakeUpRate { wake_ups: 0, over_ns: 10 * S });
        assert_eq!(wake_ups.count(), 20);
    }

    #[test]
    fn a_high_rate_is_taken_over_the_wake_ups_that_are_remembered() {
        let wake_ups = woken((1..=750).map(|cycle| cycle * S / 750));
        assert_eq!(wake_ups.rate(S).per_second().round(), 750.0);
    }

    #[test]
    fn what_the_device_did_before_is_left_out() {
        let wake_ups = woken((1..=750).map(|cycle| cycle * S / 750));
        assert!(wake_ups.note_state(DeviceState::Deep, S + 1));
        assert!(!wake_ups.note_state(DeviceState::Deep, 2 * S));
        assert_eq!(wake_ups.state(), DeviceState::Deep);
        wake_ups.note(3 * S);
        assert_eq!(wake_ups.rate(5 * S + 1), WakeUpRate { wake_ups: 1, over_ns: 4 * S });
        assert!(wake_ups.note_state(DeviceState::Parked, 6 * S));
        assert_eq!(wake_ups.rate(6 * S).per_second(), 0.0);
    }

    #[test]
    fn one_wake_up_of_a_moment_ago_is_one_a_second() {
        let wake_ups = woken([]);
        wake_ups.note_state(DeviceState::Deep, 5 * S);
        wake_ups.note(5 * S);
        assert_eq!(wake_ups.rate(5 * S + 1), WakeUpRate { wake_ups: 1, over_ns: S });
    }
}
