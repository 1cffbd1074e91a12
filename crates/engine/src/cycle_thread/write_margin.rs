//! How long before the next cycle a driver that waits for the graph begins to write. Thread: cycle.

/// The longest recent time from the planned end of the wait, so that late wake-ups count, until the
/// device has the samples.
///
/// A device with two periods has nothing left to play when the next cycle is due: what is written
/// after that is an xrun, for all programs. So the wait ends earlier, by what was measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteMargin {
    longest_ns: u64,
}

/// Before anything is measured.
const FIRST_NS: u64 = 100_000;
/// What a longer write adds is forgotten within about this many cycles.
const FORGET_CYCLES: u64 = 1024;
/// A margin is this part of a period at most: one write that was held up for long leaves clients
/// most of their time.
const LARGEST_DIVISOR: u64 = 4;
/// A client had its time if the driver waited for it through this part of a period.
const FAIR_DIVISOR: u64 = 2;

impl Default for WriteMargin {
    fn default() -> Self {
        Self { longest_ns: FIRST_NS }
    }
}

impl WriteMargin {
    /// Notes what the driver's part took, ns.
    pub(super) fn note(&mut self, took_ns: u64) {
        let kept_ns = self.longest_ns - self.longest_ns.div_ceil(FORGET_CYCLES);
        self.longest_ns = took_ns.max(kept_ns);
    }

    /// Returns the deadline of the wait for clients, if the next cycle is due at `next_due_ns`.
    pub(super) fn wait_until_ns(self, next_due_ns: u64, period_ns: u64) -> u64 {
        // MUTATION: write_margin.none
        next_due_ns.saturating_sub(self.longest_ns.min(period_ns / LARGEST_DIVISOR))
    }
}

/// Whether clients that were woken at `released_ns` and are not waited for after `until_ns` had
/// enough time to be blamed: if not, the driver itself was late.
pub(super) fn had_time(released_ns: u64, until_ns: u64, period_ns: u64) -> bool {
    until_ns.saturating_sub(released_ns) >= period_ns / FAIR_DIVISOR
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 1_000_000;
    const DUE_NS: u64 = 7_000_000;

    fn margin_ns(margin: WriteMargin) -> u64 {
        DUE_NS - margin.wait_until_ns(DUE_NS, PERIOD_NS)
    }

    #[test]
    fn the_wait_ends_as_long_before_the_next_cycle_as_the_longest_write_took() {
        let mut margin = WriteMargin::default();
        assert_eq!(margin_ns(margin), FIRST_NS);
        for took_ns in [20_000, 130_000, 40_000] {
            margin.note(took_ns);
        }
        assert!((129_000..=130_000).contains(&margin_ns(margin)), "{margin:?}");
    }

    #[test]
    fn a_long_write_leaves_clients_most_of_a_period_for_a_while() {
        let mut margin = WriteMargin::default();
        margin.note(50 * PERIOD_NS);
        assert_eq!(margin_ns(margin), PERIOD_NS / 4);
        (0..20 * FORGET_CYCLES).for_each(|_| margin.note(5_000));
        assert_eq!(margin_ns(margin), 5_000);
    }

    #[test]
    fn clients_of_a_driver_that_was_late_itself_are_not_blamed() {
        assert!(had_time(0, PERIOD_NS - 100_000, PERIOD_NS));
        assert!(!had_time(PERIOD_NS / 2, PERIOD_NS - 100_000, PERIOD_NS));
        assert!(!had_time(3 * PERIOD_NS, PERIOD_NS, PERIOD_NS));
    }
}
