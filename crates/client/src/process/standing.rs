//! Which real-time priority a process thread has earned.

/// A client that has just begun to run, or was so late that its priority was taken away, runs one below the others for
/// a while: should it not come back from its callback, it keeps no CPU from those who have proved themselves.
///
/// Process thread. Thread: cycle.
#[derive(Debug)]
pub(super) struct Standing {
    /// Until when it runs below, `CLOCK_MONOTONIC` ns; `None`: it does not.
    below_until_ns: Option<u64>,
}

/// How long a client has to prove itself that is new.
const NEW_NS: u64 = 10_000_000_000;
/// ... and one that was late.
const LATE_NS: u64 = 30_000_000_000;

impl Standing {
    /// Of a client that begins to run.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { below_until_ns: Some(now_ns.saturating_add(NEW_NS)) }
    }

    /// The priority to run at, of that which the server has for clients.
    pub(super) fn priority(&self, of_clients: u32) -> u32 {
        if self.below_until_ns.is_some() { of_clients.saturating_sub(1).max(1) } else { of_clients }
    }

    /// Its priority was taken away.
    pub(super) fn was_late(&mut self, now_ns: u64) {
        self.below_until_ns = Some(now_ns.saturating_add(LATE_NS));
    }

    /// True once, when it has proved itself.
    pub(super) fn rises(&mut self, now_ns: u64) -> bool {
        self.below_until_ns.take_if(|until_ns| *until_ns <= now_ns).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_client_runs_below_the_others_until_it_has_proved_itself() {
        let mut standing = Standing::new(7);
        assert!(!standing.rises(NEW_NS));
        assert_eq!(standing.priority(5), 4);
        assert!(standing.rises(NEW_NS + 7));
        assert_eq!(standing.priority(5), 5);
        assert!(!standing.rises(NEW_NS + 8), "once");
    }

    #[test]
    fn a_client_that_was_late_begins_anew_and_for_longer() {
        let mut standing = Standing::new(0);
        assert!(standing.rises(NEW_NS));
        standing.was_late(NEW_NS);
        assert_eq!(standing.priority(5), 4);
        assert!(!standing.rises(2 * NEW_NS));
        assert!(standing.rises(NEW_NS + LATE_NS));
    }

    #[test]
    fn below_the_lowest_priority_there_is_none() {
        assert_eq!(Standing::new(0).priority(1), 1);
    }
}
