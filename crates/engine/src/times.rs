//! Quantiles of a duration that is measured once in each cycle: over the last second, the last
//! minute, and since the start.

use std::collections::VecDeque;

use proto::timing::{Quantiles, Windows};

/// Values are counted in buckets, 32 for each doubling: a quantile is at most 3 % too high.
const BUCKETS_PER_DOUBLING: u64 = 32;
const SHIFT: u32 = BUCKETS_PER_DOUBLING.trailing_zeros();

/// Length of a slice of the last second, ns.
const SLICE_NS: u64 = 250_000_000;
/// Slices in the last second.
const SECOND: usize = 4;
/// Slices that are merged into one slice of the last minute.
const COARSE: u32 = 20;
/// Merged slices in the last minute.
const MINUTE: usize = 12;

fn bucket(value: u64) -> u16 {
    if value < BUCKETS_PER_DOUBLING {
        return value as u16;
    }
    let doublings = value.ilog2() - SHIFT;
    ((u64::from(doublings) << SHIFT) + (value >> doublings)) as u16
}

/// The largest value of a bucket.
fn ceiling(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    match (bucket >> SHIFT).checked_sub(1) {
        None => bucket,
        Some(doublings) => {
            let mantissa = bucket - (doublings << SHIFT);
            ((mantissa + 1) << doublings).wrapping_sub(1)
        }
    }
}

/// Counted values: the buckets that are not empty, in order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Counts {
    buckets: Vec<(u16, u32)>,
    max: u64,
}

impl Counts {
    fn add(&mut self, value: u64) {
        self.add_to(bucket(value), 1);
        self.max = self.max.max(value);
    }

    fn add_to(&mut self, bucket: u16, count: u32) {
        match self.buckets.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(count),
            Err(at) => self.buckets.insert(at, (bucket, count)),
        }
    }

    fn merge(&mut self, other: &Self) {
        other.buckets.iter().for_each(|(bucket, count)| self.add_to(*bucket, *count));
        self.max = self.max.max(other.max);
    }

    fn quantiles(&self) -> Quantiles {
        let count: u64 = self.buckets.iter().map(|(_, count)| u64::from(*count)).sum();
        let at = |per_mille: u64| {
            let rank = (count * per_mille).div_ceil(1000).max(1);
            let mut below = 0;
            let found = self.buckets.iter().find(|(_, count)| {
                below += u64::from(*count);
                below >= rank
            });
            found.map_or(0, |(bucket, _)| ceiling(*bucket).min(self.max))
        };
        Quantiles { count, p50_ns: at(500), p99_ns: at(990), p999_ns: at(999), max_ns: self.max }
    }
}

/// Counts of a duration that is measured once in each cycle, ns. Takes some kilobytes, whatever the
/// values are.
#[derive(Debug, Default)]
pub struct Times {
    /// The slice that is being counted.
    current: Counts,
    /// When that slice ends, `CLOCK_MONOTONIC` ns.
    ends_ns: u64,
    second: VecDeque<Counts>,
    /// The next merged slice, and how many slices it has so far.
    coarse: (Counts, u32),
    minute: VecDeque<Counts>,
    start: Counts,
}

impl Times {
    /// Notes a duration of the cycle that began at `time_ns`.
    pub fn note(&mut self, time_ns: u64, duration_ns: u64) {
        self.advance(time_ns);
        self.current.add(duration_ns);
    }

    /// Drops the slices that are too old at `time_ns`.
    fn advance(&mut self, time_ns: u64) {
        let minute_ns = SLICE_NS * u64::from(COARSE) * MINUTE as u64;
        if self.ends_ns == 0 || time_ns > self.ends_ns + minute_ns {
            self.close_slice();
            (self.second, self.minute, self.coarse) = Default::default();
            self.ends_ns = time_ns + SLICE_NS;
        }
        while time_ns >= self.ends_ns {
            self.close_slice();
            self.ends_ns += SLICE_NS;
        }
    }

    fn close_slice(&mut self) {
        let slice = std::mem::take(&mut self.current);
        self.start.merge(&slice);
        self.coarse.0.merge(&slice);
        self.coarse.1 += 1;
        if self.coarse.1 == COARSE {
            self.minute.push_back(std::mem::take(&mut self.coarse).0);
            keep_last(&mut self.minute, MINUTE);
        }
        self.second.push_back(slice);
        keep_last(&mut self.second, SECOND);
    }

    /// Returns the three windows as they are at `time_ns`. The last second and the last minute may
    /// be a slice longer.
    pub fn windows(&mut self, time_ns: u64) -> Windows {
        self.advance(time_ns);
        let with_current = |parts: &mut dyn Iterator<Item = &Counts>| {
            let mut all = self.current.clone();
            parts.for_each(|part| all.merge(part));
            all.quantiles()
        };
        Windows {
            second: with_current(&mut self.second.iter()),
            minute: with_current(&mut self.minute.iter().chain([&self.coarse.0])),
            start: with_current(&mut [&self.start].into_iter()),
        }
    }
}

fn keep_last(parts: &mut VecDeque<Counts>, most: usize) {
    while parts.len() > most {
        parts.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE_NS: u64 = 1_000_000;

    #[test]
    fn a_bucket_is_at_most_three_percent_wide() {
        let values =
            (0..5_000).chain((0..60).map(|power| 1 << power)).chain([u64::MAX, 123_456_789_012]);
        for value in values {
            let ceiling = ceiling(bucket(value));
            assert!(ceiling >= value && ceiling - value <= value / 32, "{value}: {ceiling}");
        }
        assert!((0..100_000).map(bucket).is_sorted());
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut times = Times::default();
        (1..=1000).for_each(|value| times.note(1, value * 1000));
        let all = times.windows(1).start;
        assert_eq!((all.count, all.max_ns), (1000, 1_000_000));
        for (found, exact) in [(all.p50_ns, 500_000), (all.p99_ns, 990_000), (all.p999_ns, 999_000)]
        {
            assert!(found >= exact && found <= exact + exact / 32, "{found} for {exact}");
        }
    }

    #[test]
    fn a_peak_leaves_each_window_when_its_time_has_passed() {
        let mut times = Times::default();
        let mut time_ns = 5 * CYCLE_NS;
        let mut run = |times: &mut Times, cycles: u64| {
            for _ in 0..cycles {
                time_ns += CYCLE_NS;
                times.note(time_ns, 1_000);
            }
            let windows = times.windows(time_ns);
            [windows.second, windows.minute, windows.start].map(|window| window.max_ns)
        };
        run(&mut times, 10);
        times.note(16 * CYCLE_NS, 77_000);
        assert_eq!(run(&mut times, 900), [77_000; 3]);
        assert_eq!(run(&mut times, 500), [1_000, 77_000, 77_000]);
        assert_eq!(run(&mut times, 57_000), [1_000, 77_000, 77_000]);
        assert_eq!(run(&mut times, 10_000), [1_000, 1_000, 77_000]);
    }

    #[test]
    fn an_idle_client_keeps_only_its_total_counts() {
        let mut times = Times::default();
        times.note(1, 5);
        let windows = times.windows(3_600_000_000_000);
        assert_eq!((windows.second.count, windows.minute.count, windows.start.count), (0, 0, 1));
        assert_eq!(Times::default().windows(9), Windows::default());
    }
}
