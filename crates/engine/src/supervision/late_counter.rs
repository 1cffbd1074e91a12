//! The count that decides whether a client is unpinned or suspended.

use super::backoff::FORGET_NS;

/// Counts up for each cycle in which a client was late, and down for each in which it was in time.
///
/// A stall of the whole machine for some cycles is forgotten after as many. A client that is late
/// more often than not adds up. Where the driver waits for a client (*overdue*), every late cycle
/// costs all programs, so a cycle in time makes up for none: such cycles are forgotten once
/// [`FORGET_NS`] have passed without one. Thread: control.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LateCounter {
    forgivable: u32,
    overdue: u32,
    /// When the last overdue cycle was noted, `CLOCK_MONOTONIC` ns.
    overdue_ns: u64,
}

/// From this count on, the kernel chooses a client's CPU: the assigned one may have other work.
/// Fewer late cycles are no reason, because a hop that leaves the CPU costs as much as several that
/// stay on it, and makes other clients late.
pub const UNPIN_CYCLES: u32 = 4;
/// Default of `--client-timeout`: the longer of the two. A late client's followers wait for it no
/// longer than a quarter of the first of these quanta; and no client should have to be reinstated
/// because a machine stopped for some milliseconds.
const TIMEOUT_QUANTA: u32 = 3;
const TIMEOUT_MS: u32 = 20;

impl LateCounter {
    /// Notes a cycle in which the client was late; returns the count.
    pub fn note_late(&mut self) -> u32 {
        self.forgivable = self.forgivable.saturating_add(1);
        self.count()
    }

    /// Notes a cycle in which the driver waited for the client in vain; returns the count.
    pub fn note_overdue(&mut self, now_ns: u64) -> u32 {
        // MUTATION: late_counter.overdue_cycles_forgiven
        self.overdue = self.overdue.saturating_add(1);
        self.overdue_ns = now_ns;
        self.count()
    }

    /// Notes a cycle in which the client was in time.
    pub fn note_in_time(&mut self, now_ns: u64) {
        self.forgivable = self.forgivable.saturating_sub(1);
        if now_ns.saturating_sub(self.overdue_ns) >= FORGET_NS {
            self.overdue = 0;
        }
    }

    fn count(&self) -> u32 {
        self.forgivable.saturating_add(self.overdue)
    }
}

/// Returns the count at which a client is suspended: `timeout_ms` (`--client-timeout`) or the
/// default, in cycles of `quantum` frames. At least 1.
pub fn timeout_cycles(timeout_ms: Option<u32>, quantum: u32, sample_rate_hz: u32) -> u32 {
    let cycles = |ms: u32| {
        let frames = u64::from(ms) * u64::from(sample_rate_hz) / 1000;
        u32::try_from(frames.div_ceil(u64::from(quantum.max(1)))).unwrap_or(u32::MAX)
    };
    timeout_ms.map_or_else(|| cycles(TIMEOUT_MS).max(TIMEOUT_QUANTA), cycles).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_timeout_is_three_quanta_but_at_least_20_ms() {
        for (case, timeout_ms, quantum, cycles) in [
            ("twenty milliseconds", None, 64, 15),
            ("nearly four quanta", None, 256, 4),
            ("three quanta", None, 1024, 3),
            ("as asked for", Some(500), 256, 94),
            ("less than a quantum", Some(1), 256, 1),
            ("no time", Some(0), 256, 1),
        ] {
            assert_eq!(timeout_cycles(timeout_ms, quantum, 48_000), cycles, "{case}");
        }
    }

    #[test]
    fn a_cycle_in_time_makes_up_for_a_late_one() {
        let mut counter = LateCounter::default();
        assert_eq!((counter.note_late(), counter.note_late()), (1, 2));
        (0..5).for_each(|_| counter.note_in_time(0));
        assert_eq!(counter.note_late(), 1, "never below zero");
    }

    #[test]
    fn no_cycle_in_time_makes_up_for_one_that_the_driver_waited_for() {
        let mut counter = LateCounter::default();
        for count in 1..=9 {
            assert_eq!(counter.note_overdue(1_000), count);
            (0..100).for_each(|_| counter.note_in_time(999 + FORGET_NS));
        }
        counter.note_in_time(1_000 + FORGET_NS);
        assert_eq!(counter.note_late(), 1, "forgotten");
    }
}
