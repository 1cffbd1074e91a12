//! Summaries of samples.

use serde::Serialize;

/// The usual summary of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many samples.
    pub samples: usize,
    /// The smallest.
    pub minimum: f64,
    /// Half are at or below it.
    pub median: f64,
    /// 99 of 100 are at or below it.
    pub p99: f64,
    /// The largest.
    pub maximum: f64,
    /// The sum; the figure that matters for events.
    pub total: f64,
}

impl Summary {
    /// `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            samples: sorted.len(),
            minimum: *sorted.first()?,
            median: quantile(&sorted, 50),
            p99: quantile(&sorted, 99),
            maximum: *sorted.last()?,
            total: sorted.iter().sum(),
        })
    }
}

/// The nearest-rank quantile: the smallest sample that `percent` of all samples do not exceed.
/// Never an average of two samples, so every figure was measured. `sorted` is not empty.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_at_the_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&hundred).unwrap();
        assert_eq!(
            (summary.minimum, summary.median, summary.p99, summary.maximum),
            (1.0, 50.0, 99.0, 100.0)
        );
        assert_eq!((summary.samples, summary.total), (100, 5050.0));
    }

    #[test]
    fn a_single_sample_is_each_of_its_quantiles() {
        let one = Summary::of(&[7.0]).unwrap();
        assert_eq!((one.minimum, one.median, one.p99, one.maximum), (7.0, 7.0, 7.0, 7.0));
        assert_eq!(Summary::of(&[]), None);
    }
}
