//! When the device's cycles are due: a delay-locked loop over the times at which the device passed
//! the end of a quantum.

use rt::clock::Dll;
use rt::shm::CycleInfo;

/// An estimate of the device's clock.
#[derive(Debug)]
pub(super) struct PeriodClock {
    clock: Dll,
    next_due_ns: u64,
    period_ns: f64,
    /// How long after the due time the device is sure to report that it has passed the quantum's
    /// end.
    margin_ns: u64,
}

/// An unused margin shrinks by this fraction of itself in each cycle.
const MARGIN_DECAY: u64 = 4096;

impl PeriodClock {
    /// Returns the clock of a device that was started at `now_ns`.
    pub(super) fn started_at(now_ns: u64, quantum: u32, rate_hz: u32) -> Self {
        let period_ns = CycleInfo::nominal_period_ns(quantum, rate_hz);
        let clock = Dll::locked_at(now_ns, period_ns);
        Self { clock, next_due_ns: now_ns + period_ns as u64, period_ns, margin_ns: 0 }
    }

    /// Returns when the next cycle is due.
    pub(super) fn next_due_ns(&self) -> u64 {
        self.next_due_ns
    }

    /// Returns when a timer should fire for it.
    pub(super) fn next_wakeup_ns(&self) -> u64 {
        self.next_due_ns + self.margin_ns
    }

    /// Updates the estimate with the time at which the device passed the end of the quantum.
    pub(super) fn note(&mut self, due_ns: u64) {
        if due_ns.abs_diff(self.next_due_ns) > self.period_ns as u64 / 2 {
            // The position jumped: devices fetch much at once when they start. The clock locks
            // again so that the driver catches up.
            self.clock = Dll::locked_at(due_ns, self.period_ns);
            self.next_due_ns = due_ns + self.period_ns as u64;
        } else {
            self.next_due_ns = self.clock.update(due_ns).1;
        }
        self.margin_ns -= self.margin_ns / MARGIN_DECAY;
    }

    /// Notes that the timer fired `short_ns` too early.
    pub(super) fn note_early(&mut self, short_ns: u64) {
        // Leaves half a cycle for the graph.
        self.margin_ns = (self.margin_ns + short_ns).min(self.period_ns as u64 / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_slower_than_it_says_is_followed() {
        let (start, real_ns) = (5_000_000_000, 1_333_333.0 * 1.0002);
        let mut clock = PeriodClock::started_at(start, 64, 48_000);
        for cycle in 1..60_000_u32 {
            clock.note(start + (f64::from(cycle) * real_ns) as u64);
        }
        let expected = start + (60_000.0 * real_ns) as u64;
        assert!(
            clock.next_due_ns().abs_diff(expected) < 1_000,
            "{}",
            clock.next_due_ns().abs_diff(expected)
        );
    }

    #[test]
    fn a_device_that_jumps_ahead_is_caught_up_with_at_once() {
        let mut clock = PeriodClock::started_at(1_000_000_000, 480, 48_000);
        clock.note(1_010_000_000);
        clock.note(1_011_000_000);
        assert_eq!(clock.next_due_ns(), 1_021_000_000);
    }

    #[test]
    fn an_early_wake_up_widens_the_margin_for_a_while() {
        let mut clock = PeriodClock::started_at(0, 480, 48_000);
        clock.note_early(1_000_000);
        assert_eq!(clock.next_wakeup_ns(), 11_000_000);
        clock.note_early(100_000_000);
        assert_eq!(clock.next_wakeup_ns() - clock.next_due_ns(), 5_000_000);
        for cycle in 1..100_000 {
            clock.note(cycle * 10_000_000);
        }
        assert!(clock.next_wakeup_ns() - clock.next_due_ns() < 10_000);
    }
}
