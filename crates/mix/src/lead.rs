//! How long before the end of what is rendered a device's thread wakes.

/// The shortest lead, ns: what PulseAudio begins with.
const LEAST_NS: u64 = 20_000_000;
/// The shortest lead where less than four times that is rendered ahead: a part of it. Half would
/// wake the thread nearly twice as often.
const LEAST_PART: u64 = 5;
/// The longest lead, as a part of what is rendered ahead.
const MOST_PART: u64 = 2;
/// The lead is this many times the worst lateness.
const FACTOR: u64 = 4;
/// The worst lateness decays by one part in this many per wake-up.
const DECAY: u64 = 64;

/// Derives the lead from the observed lateness of wake-ups.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lead {
    worst_ns: u64,
}

impl Lead {
    /// Notes how late a wake-up was. Thread: cycle.
    pub fn note(&mut self, late_ns: u64) {
        self.worst_ns = (self.worst_ns - self.worst_ns / DECAY).max(late_ns);
    }

    /// Returns how long before the end of what is rendered to wake, if that is at most `depth_ns`
    /// ahead, ns. Thread: cycle.
    #[must_use]
    pub fn ns(self, depth_ns: u64) -> u64 {
        let least = LEAST_NS.min(depth_ns / LEAST_PART);
        self.worst_ns.saturating_mul(FACTOR).max(least).min(depth_ns / MOST_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS_NS: u64 = 1_000_000;

    #[test]
    fn the_lead_follows_the_recent_worst_lateness() {
        let mut lead = Lead::default();
        let ns = |lead: Lead| lead.ns(2000 * MS_NS);
        assert_eq!(ns(lead), LEAST_NS);
        lead.note(30 * MS_NS);
        assert_eq!(ns(lead), 120 * MS_NS);
        (0..200).for_each(|_| lead.note(100_000));
        assert_eq!(ns(lead), LEAST_NS);
    }

    #[test]
    fn a_short_depth_is_mostly_slept_through_unless_wake_ups_are_late() {
        let mut lead = Lead::default();
        assert_eq!(lead.ns(20 * MS_NS), 4 * MS_NS);
        lead.note(2 * MS_NS);
        assert_eq!(lead.ns(20 * MS_NS), 8 * MS_NS);
        lead.note(30 * MS_NS);
        assert_eq!(lead.ns(20 * MS_NS), 10 * MS_NS);
    }
}
