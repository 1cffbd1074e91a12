//! The recent average of a duration, robust against outliers.

/// A duration's weight: the average follows a change within some tens of cycles.
const WEIGHT: f64 = 1.0 / 32.0;
/// The average starts with the shortest of this many durations: code that runs for the first time
/// finds neither itself nor its data in the caches.
const FIRST: u32 = 8;
/// Outliers are clamped to `CLAMP_FACTOR` times the average plus `CLAMP_MARGIN_NS`, so that one
/// stalled cycle does not skew it.
const CLAMP_FACTOR: f64 = 2.0;
const CLAMP_MARGIN_NS: f64 = 1_000.0;

/// The exponential average of a duration that is measured once in each cycle, ns.
#[derive(Debug, Default, Clone, Copy)]
pub struct Average {
    ns: f64,
    /// Durations noted so far, up to [`FIRST`].
    noted: u32,
}

impl Average {
    /// Notes the duration of one more cycle.
    pub fn note(&mut self, duration_ns: u64) {
        let duration_ns = duration_ns as f64;
        if self.noted < FIRST {
            self.ns = if self.noted == 0 { duration_ns } else { duration_ns.min(self.ns) };
            self.noted += 1;
            return;
        }
        let counted_ns = duration_ns.min(CLAMP_FACTOR * self.ns + CLAMP_MARGIN_NS);
        self.ns += (counted_ns - self.ns) * WEIGHT;
    }

    /// Returns whether no duration has been noted.
    pub fn is_empty(&self) -> bool {
        self.noted == 0
    }

    /// Returns the average, ns; 0 if no duration has been noted.
    pub fn ns(&self) -> u64 {
        self.ns as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn averaged(durations_ns: impl IntoIterator<Item = u64>) -> u64 {
        let mut average = Average::default();
        durations_ns.into_iter().for_each(|duration_ns| average.note(duration_ns));
        average.ns()
    }

    #[test]
    fn the_average_follows_lasting_changes_from_the_first_duration_on() {
        assert_eq!(averaged([]), 0);
        assert_eq!(averaged([40_000]), 40_000);
        let before = [1_000; 100];
        for stays_ns in [0, 100, 5_000, 500_000] {
            let found_ns = averaged(before.into_iter().chain([stays_ns; 400]));
            assert!(
                found_ns.abs_diff(stays_ns) <= stays_ns / 100 + 1,
                "{found_ns} ns, not {stays_ns}"
            );
        }
    }

    #[test]
    fn a_long_first_cycle_is_forgotten_with_the_next() {
        assert_eq!(averaged([3_000_000, 15_000, 16_000]), 15_000);
    }

    #[test]
    fn a_single_outlier_hardly_moves_the_average() {
        let found_ns = averaged([100_000; 50].into_iter().chain([20_000_000]));
        assert!((100_000..104_000).contains(&found_ns), "{found_ns} ns");
    }
}
