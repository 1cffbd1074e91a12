//! The real-time priority that a process thread runs at.

/// Raises the priority of a client by one step after a probation in which it was never so late that
/// the server took its priority away. A new or late client that hangs in its callback then cannot
/// keep the CPU from the clients above it.
///
/// Used on the process thread. Thread: cycle.
#[derive(Debug)]
pub(super) struct PriorityBoost {
    /// End of the probation, `CLOCK_MONOTONIC` ns; `None` once it has passed.
    due_at_ns: Option<u64>,
}

/// Probation of a new client.
const NEW_NS: u64 = 10_000_000_000;
/// Probation of a client that was late.
const LATE_NS: u64 = 30_000_000_000;

impl PriorityBoost {
    /// Starts the probation of a new client.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { due_at_ns: Some(now_ns.saturating_add(NEW_NS)) }
    }

    /// Returns the priority to run at: `announced`, the priority that the server announces to
    /// programs, or one more unless that exceeds `highest`.
    pub(super) fn priority(&self, announced: u32, highest: u32) -> u32 {
        if self.due_at_ns.is_some() {
            announced
        } else {
            announced.saturating_add(1).min(highest.max(announced))
        }
    }

    /// Restarts the probation after the server took the priority away.
    pub(super) fn was_late(&mut self, now_ns: u64) {
        self.due_at_ns = Some(now_ns.saturating_add(LATE_NS));
    }

    /// Returns true once, when the probation has passed.
    pub(super) fn becomes_due(&mut self, now_ns: u64) -> bool {
        self.due_at_ns.take_if(|due_at_ns| *due_at_ns <= now_ns).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_runs_above_new_ones_once_it_has_proved_itself() {
        let mut boost = PriorityBoost::new(7);
        assert!(!boost.becomes_due(NEW_NS));
        assert_eq!(boost.priority(5, 9), 5);
        assert!(boost.becomes_due(NEW_NS + 7));
        assert_eq!(boost.priority(5, 9), 6);
        assert!(!boost.becomes_due(NEW_NS + 8), "once");
    }

    #[test]
    fn a_late_client_restarts_with_a_longer_probation() {
        let mut boost = PriorityBoost::new(0);
        assert!(boost.becomes_due(NEW_NS));
        boost.was_late(NEW_NS);
        assert_eq!(boost.priority(5, 9), 5);
        assert!(!boost.becomes_due(2 * NEW_NS));
        assert!(boost.becomes_due(NEW_NS + LATE_NS));
    }

    #[test]
    fn no_client_reaches_the_drivers_priority() {
        let mut boost = PriorityBoost::new(0);
        assert!(boost.becomes_due(NEW_NS));
        assert_eq!(boost.priority(5, 5), 5);
        assert_eq!(boost.priority(5, 0), 5);
    }
}
