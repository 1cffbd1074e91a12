//! Exponential back-off: a measure that is needed again soon lasts twice as long.

/// How long a measure lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffLimits {
    /// The first time, ns.
    pub first_ns: u64,
    /// At most, ns.
    pub longest_ns: u64,
}

/// This long after the end of a measure, the next one is as short as the first.
pub const FORGET_NS: u64 = 30_000_000_000;

/// A measure that lasts for a while, and for longer each time that it is needed again soon.
///
/// Thread: control.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    limits: BackoffLimits,
    /// How long the measure lasts now, or lasted; 0 before the first.
    length_ns: u64,
    /// `CLOCK_MONOTONIC` ns at which the measure ends, or ended.
    until_ns: u64,
}

impl Backoff {
    /// Creates a back-off that has not begun.
    pub const fn new(limits: BackoffLimits) -> Self {
        Self { limits, length_ns: 0, until_ns: 0 }
    }

    /// Begins the measure; returns the time at which it ends, ns.
    pub fn begin(&mut self, now_ns: u64) -> u64 {
        let is_soon = self.length_ns > 0 && now_ns.saturating_sub(self.until_ns) < FORGET_NS;
        self.length_ns = if is_soon {
            (2 * self.length_ns).min(self.limits.longest_ns)
        } else {
            self.limits.first_ns
        };
        self.extend(now_ns)
    }

    /// Lets the measure last as long from `now_ns` on; returns the time at which it ends, ns.
    pub fn extend(&mut self, now_ns: u64) -> u64 {
        self.until_ns = now_ns.saturating_add(self.length_ns);
        self.until_ns
    }

    /// Returns for how many more ns the measure lasts; `None` if it does not.
    pub fn remaining_ns(&self, now_ns: u64) -> Option<u64> {
        self.until_ns.checked_sub(now_ns).filter(|left_ns| *left_ns > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BackoffLimits = BackoffLimits { first_ns: 10, longest_ns: 50 };

    #[test]
    fn a_measure_that_is_needed_again_soon_lasts_twice_as_long() {
        let (mut backoff, mut now_ns) = (Backoff::new(LIMITS), 1_000);
        for length_ns in [10, 20, 40, 50, 50] {
            assert_eq!(backoff.begin(now_ns), now_ns + length_ns);
            now_ns += length_ns;
            assert_eq!(backoff.remaining_ns(now_ns - 1), Some(1));
            assert_eq!(backoff.remaining_ns(now_ns), None);
        }
    }

    #[test]
    fn a_measure_is_as_short_as_the_first_once_the_last_is_forgotten() {
        let mut backoff = Backoff::new(LIMITS);
        backoff.begin(0);
        let end_ns = backoff.begin(10);
        assert_eq!(backoff.begin(end_ns + FORGET_NS), end_ns + FORGET_NS + LIMITS.first_ns);
    }

    #[test]
    fn an_extended_measure_keeps_its_length() {
        let mut backoff = Backoff::new(LIMITS);
        backoff.begin(0);
        assert_eq!(backoff.extend(9), 19);
        assert_eq!(backoff.begin(20), 40, "twice the first, not twice the extended time");
    }

    #[test]
    fn a_measure_that_is_begun_before_its_end_counts_as_needed_again() {
        let mut backoff = Backoff::new(LIMITS);
        backoff.begin(0);
        assert_eq!(backoff.begin(5), 25);
    }
}
