//! When a process is started again.

/// The first pause, ns.
const FIRST_NS: u64 = 250_000_000;
/// The longest pause, ns; and how long a process must have run for the pauses to be short again.
const LONGEST_NS: u64 = 10_000_000_000;

/// The pauses between the ends of processes and their successors, which grow while they end soon.
#[derive(Debug)]
pub(super) struct Restarts {
    next_ns: u64,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { next_ns: FIRST_NS }
    }
}

impl Restarts {
    /// A process has ended after this time. Returns how long to wait before the next one starts.
    pub(super) fn pause_ns(&mut self, ran_ns: u64) -> u64 {
        if ran_ns >= LONGEST_NS {
            self.next_ns = FIRST_NS;
        }
        let pause_ns = self.next_ns;
        self.next_ns = (2 * pause_ns).min(LONGEST_NS);
        pause_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn pauses_grow_while_processes_end_soon() {
        let mut restarts = Restarts::default();
        let pauses: Vec<u64> = (0..8).map(|_| restarts.pause_ns(0) / MS).collect();
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(restarts.pause_ns(LONGEST_NS - 1) / MS, 10_000);
    }

    #[test]
    fn a_process_that_has_run_for_a_while_is_replaced_soon() {
        let mut restarts = Restarts::default();
        assert_eq!((0..8).map(|_| restarts.pause_ns(0)).last(), Some(LONGEST_NS));
        assert_eq!(restarts.pause_ns(LONGEST_NS) / MS, 250);
        assert_eq!(restarts.pause_ns(0) / MS, 500);
    }
}
