//! How long before the end of what is rendered a device's thread wakes.

/// The shortest lead, ns: what PulseAudio begins with.
const LEAST_NS: u64 = 20_000_000;
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

    /// Returns how long before the end of what is rendered to wake, ns. Thread: cycle.
    #[must_use]
    pub fn ns(self) -> u64 {
        self.worst_ns.saturating_mul(FACTOR).max(LEAST_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_follows_the_recent_worst_lateness() {
        let mut lead = Lead::default();
        assert_eq!(lead.ns(), LEAST_NS);
        lead.note(30_000_000);
        assert_eq!(lead.ns(), 120_000_000);
        (0..200).for_each(|_| lead.note(100_000));
        assert_eq!(lead.ns(), LEAST_NS);
    }
}
