//! When the device's cycles are due: a delay-locked loop over the dates at which it crossed a quantum's end.

use rt::clock::Dll;
use rt::shm::CycleInfo;

/// The device's clock, as far as it is known.
#[derive(Debug)]
pub(super) struct Pace {
    clock: Dll,
    next_due_ns: u64,
    period_ns: f64,
    /// How long after a due date the device is sure to say that it has got there.
    margin_ns: u64,
}

/// A margin that was not needed shrinks by this part in each cycle.
const MARGIN_DECAY: u64 = 4096;

impl Pace {
    /// A device that was started at `now_ns`.
    pub(super) fn started_at(now_ns: u64, quantum: u32, rate_hz: u32) -> Self {
        let period_ns = CycleInfo::nominal_period_ns(quantum, rate_hz);
        let clock = Dll::locked_at(now_ns, period_ns);
        Self { clock, next_due_ns: now_ns + period_ns as u64, period_ns, margin_ns: 0 }
    }

    /// When the next cycle is due.
    pub(super) fn next_due_ns(&self) -> u64 {
        self.next_due_ns
    }

    /// When a timer is to go off for it.
    pub(super) fn next_wakeup_ns(&self) -> u64 {
        self.next_due_ns + self.margin_ns
    }

    /// Notes when the device was due to end the quantum.
    pub(super) fn note(&mut self, due_ns: u64) {
        if due_ns.abs_diff(self.next_due_ns) > self.period_ns as u64 / 2 {
            // It has jumped: devices fetch much at once when they start. What is behind it is caught up with.
            self.clock = Dll::locked_at(due_ns, self.period_ns);
            self.next_due_ns = due_ns + self.period_ns as u64;
        } else {
            self.next_due_ns = self.clock.update(due_ns).1;
        }
        self.margin_ns -= self.margin_ns / MARGIN_DECAY;
    }

    /// The timer went off `short_ns` too early.
    pub(super) fn note_early(&mut self, short_ns: u64) {
        // Half a cycle is left to compute in.
        self.margin_ns = (self.margin_ns + short_ns).min(self.period_ns as u64 / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_slower_than_it_says_is_followed() {
        let (start, real_ns) = (5_000_000_000, 1_333_333.0 * 1.0002);
        let mut pace = Pace::started_at(start, 64, 48_000);
        for cycle in 1..60_000_u32 {
            pace.note(start + (f64::from(cycle) * real_ns) as u64);
        }
        let expected = start + (60_000.0 * real_ns) as u64;
        assert!(pace.next_due_ns().abs_diff(expected) < 1_000, "{}", pace.next_due_ns().abs_diff(expected));
    }

    #[test]
    fn a_device_that_jumps_ahead_is_caught_up_with_at_once() {
        let mut pace = Pace::started_at(1_000_000_000, 480, 48_000);
        pace.note(1_010_000_000);
        pace.note(1_011_000_000);
        assert_eq!(pace.next_due_ns(), 1_021_000_000);
    }

    #[test]
    fn a_margin_grows_with_what_was_too_early_up_to_half_a_cycle_and_is_forgotten() {
        let mut pace = Pace::started_at(0, 480, 48_000);
        pace.note_early(1_000_000);
        assert_eq!(pace.next_wakeup_ns(), 11_000_000);
        pace.note_early(100_000_000);
        assert_eq!(pace.next_wakeup_ns() - pace.next_due_ns(), 5_000_000);
        for cycle in 1..100_000 {
            pace.note(cycle * 10_000_000);
        }
        assert!(pace.next_wakeup_ns() - pace.next_due_ns() < 10_000);
    }
}
