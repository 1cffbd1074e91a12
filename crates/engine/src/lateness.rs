//! How late a client is lately, and what follows from it.

/// One more for each cycle in which a client was late, one less for each in which it was in time: a machine that stops
/// everybody for some cycles is forgotten as fast, and a client that is late more often than not adds up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Lateness(u32);

/// So late, a client runs wherever the kernel likes for a while: its CPU may have other work. Less than this is no
/// reason, since a hop that leaves the CPU costs several that stay, and makes others late.
const RELEASE_CYCLES: u32 = 4;
/// Default of how late a client may be before it is left out: so many quanta, and so long. Its followers wait for it no
/// longer than a quarter of the first of them; and nobody should have to be let in again because a machine stopped for
/// some milliseconds.
const TIMEOUT_QUANTA: u32 = 3;
const TIMEOUT_MS: u32 = 20;

impl Lateness {
    /// It was late in a cycle.
    pub fn was_late(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// It was in time.
    pub fn was_in_time(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Whether it is to run where the kernel likes.
    pub fn releases(self) -> bool {
        self.0 >= RELEASE_CYCLES
    }

    /// Whether it is to be left out of cycles of `quantum` frames, after `timeout_ms` if somebody has asked for that.
    pub fn bypasses(self, timeout_ms: Option<u32>, quantum: u32, sample_rate_hz: u32) -> bool {
        let cycles = |ms: u32| {
            let frames = u64::from(ms) * u64::from(sample_rate_hz) / 1000;
            u32::try_from(frames.div_ceil(u64::from(quantum.max(1)))).unwrap_or(u32::MAX)
        };
        let timeout = timeout_ms.map_or_else(|| cycles(TIMEOUT_MS).max(TIMEOUT_QUANTA), cycles);
        self.0 >= timeout.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(late_and_in_time: &[(u32, u32)]) -> Lateness {
        let mut lateness = Lateness::default();
        for (late, in_time) in late_and_in_time {
            (0..*late).for_each(|_| lateness.was_late());
            (0..*in_time).for_each(|_| lateness.was_in_time());
        }
        lateness
    }

    #[test]
    fn a_machine_that_stops_for_a_moment_leaves_nobody_out_and_moves_nobody() {
        for (case, history) in [
            ("once, for three cycles", vec![(3, 0)]),
            ("every second, for three cycles", vec![(3, 750); 60]),
            ("every other cycle", vec![(1, 1); 1000]),
        ] {
            let lateness = after(&history);
            assert!(!lateness.releases() && !lateness.bypasses(None, 64, 48_000), "{case}: {lateness:?}");
        }
    }

    #[test]
    fn a_client_that_is_late_more_often_than_not_is_let_go_and_then_left_out() {
        assert!(after(&[(4, 0)]).releases());
        let is_slow = after(&[(2, 1); 20]);
        assert!(is_slow.bypasses(None, 64, 48_000), "{is_slow:?}");
    }

    #[test]
    fn a_client_is_left_out_after_the_time_that_was_asked_for_or_three_quanta_and_twenty_milliseconds() {
        for (case, timeout_ms, quantum, cycles) in [
            ("twenty milliseconds", None, 64, 15),
            ("nearly four quanta", None, 256, 4),
            ("three quanta", None, 1024, 3),
            ("as asked for", Some(500), 256, 94),
            ("less than a quantum", Some(1), 256, 1),
            ("no time", Some(0), 256, 1),
        ] {
            assert!(!after(&[(cycles - 1, 0)]).bypasses(timeout_ms, quantum, 48_000), "{case}");
            assert!(after(&[(cycles, 0)]).bypasses(timeout_ms, quantum, 48_000), "{case}");
        }
    }
}
