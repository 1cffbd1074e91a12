//! Which real-time priority a process thread has earned.

/// A client that has run for a while without being so late that its priority was taken away runs one above the others:
/// should one of these not come back from its callback, it keeps no CPU from those who have proved themselves.
///
/// Process thread. Thread: cycle.
#[derive(Debug)]
pub(super) struct Standing {
    /// When it will have proved itself, `CLOCK_MONOTONIC` ns; `None`: it has.
    proved_at_ns: Option<u64>,
}

/// How long a client has to prove itself that is new.
const NEW_NS: u64 = 10_000_000_000;
/// ... and one that was late.
const LATE_NS: u64 = 30_000_000_000;

impl Standing {
    /// Of a client that begins to run.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { proved_at_ns: Some(now_ns.saturating_add(NEW_NS)) }
    }

    /// The priority to run at: that which programs are told, or one more if that is not above `highest`.
    pub(super) fn priority(&self, told: u32, highest: u32) -> u32 {
        if self.proved_at_ns.is_some() { told } else { told.saturating_add(1).min(highest.max(told)) }
    }

    /// Its priority was taken away.
    pub(super) fn was_late(&mut self, now_ns: u64) {
        self.proved_at_ns = Some(now_ns.saturating_add(LATE_NS));
    }

    /// True once, when it has proved itself.
    pub(super) fn rises(&mut self, now_ns: u64) -> bool {
        self.proved_at_ns.take_if(|proved_at_ns| *proved_at_ns <= now_ns).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_runs_above_new_ones_once_it_has_proved_itself() {
        let mut standing = Standing::new(7);
        assert!(!standing.rises(NEW_NS));
        assert_eq!(standing.priority(5, 9), 5);
        assert!(standing.rises(NEW_NS + 7));
        assert_eq!(standing.priority(5, 9), 6);
        assert!(!standing.rises(NEW_NS + 8), "once");
    }

    #[test]
    fn a_client_that_was_late_begins_anew_and_for_longer() {
        let mut standing = Standing::new(0);
        assert!(standing.rises(NEW_NS));
        standing.was_late(NEW_NS);
        assert_eq!(standing.priority(5, 9), 5);
        assert!(!standing.rises(2 * NEW_NS));
        assert!(standing.rises(NEW_NS + LATE_NS));
    }

    #[test]
    fn nobody_rises_to_the_drivers_priority() {
        let mut standing = Standing::new(0);
        assert!(standing.rises(NEW_NS));
        assert_eq!(standing.priority(5, 5), 5);
        assert_eq!(standing.priority(5, 0), 5);
    }
}
