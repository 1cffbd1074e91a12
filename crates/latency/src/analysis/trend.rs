//! Evaluates a series of delays: the latency, a difference between two clocks, and frames that were
//! inserted or lost.

use super::{Delay, Method};

/// The delays of a recording, frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// The shortest.
    pub minimum: f64,
    /// The median.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub maximum: f64,
    /// Number of delays.
    pub count: usize,
}

/// The right channel's clock runs slower than the left's (or faster, where negative).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Growth of the delay, frames per million.
    pub ppm: f64,
    /// The delay at this frame of the left channel,
    pub at_frame: usize,
    /// in frames.
    pub frames: f64,
}

/// A change of the delay between two consecutive measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The last frame of the left channel with the delay before.
    pub after_frame: usize,
    /// The first frame with the new delay.
    pub before_frame: usize,
    /// How many frames longer the delay is now (or shorter, where negative).
    pub frames: f64,
}

/// The distribution of at least one delay.
pub fn distribution(delays: &[Delay]) -> Distribution {
    let mut frames: Vec<f64> = delays.iter().map(|delay| delay.frames).collect();
    frames.sort_unstable_by(f64::total_cmp);
    // Nearest rank: every figure is a measured delay.
    let rank = |part: f64| {
        let rank = (part * frames.len() as f64).ceil().max(1.0) as usize;
        frames.get(rank - 1).copied().unwrap_or_default()
    };
    Distribution {
        minimum: rank(0.0),
        median: rank(0.5),
        p99: rank(0.99),
        maximum: rank(1.0),
        count: frames.len(),
    }
}

/// A jump of the delay beyond this is a step where most stretches are copies, frames. Copies move
/// only by whole samples, but a stretch within which they move may seem to move by a fraction.
const STEP_OF_COPIES: f64 = 0.05;
/// The same for impulses that lie between samples.
const STEP: f64 = 0.5;
/// The same for correlated stretches: a single one in which the delay changes is only this precise.
const STEP_OF_STRETCH: f64 = 1.5;
/// Where stretches are not copies, a step must also exceed this multiple of the usual difference
/// between one delay and the next.
const UNCERTAIN: f64 = 5.0;
/// Minimum drift to report, frames over the whole recording.
const DRIFT: f64 = 0.5;
/// Maximum drift, frames per frame: no two clocks differ by more, so a steeper slope consists of
/// breaks.
const STEEPEST: f64 = 1e-3;

/// Finds steps between delays, and the drift that remains without them.
///
/// Sample-exact copies do not drift: where their delay changes, frames were inserted or lost.
pub fn steps_and_drift(delays: &[Delay], method: Method) -> (Vec<Step>, Option<Drift>) {
    let drifts = 2 * delays.iter().filter(|delay| delay.copied).count() < delays.len();
    let slope = if drifts { median_slope(delays) } else { 0.0 };
    let flat: Vec<f64> =
        delays.iter().map(|delay| delay.frames - slope * delay.at_frame as f64).collect();
    // A step smaller than the uncertainty of the delays cannot be seen.
    let uncertain =
        UNCERTAIN * median(flat.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect());
    let least_step = if drifts { STEP.max(uncertain) } else { STEP_OF_COPIES };
    let is_step = |index: usize, jump: f64| {
        let holds = method == Method::Onsets || !drifts || holds(&flat, index, jump);
        jump.abs() > least_step && (holds || jump.abs() > STEP_OF_STRETCH.max(uncertain))
    };
    let (mut steps, mut stepped, mut levelled) = (Vec::new(), 0.0, Vec::new());
    for (index, delay) in delays.iter().enumerate() {
        let frames = index.checked_sub(1).map_or(0.0, |before| flat[index] - flat[before]);
        if is_step(index, frames) {
            stepped += frames;
            let after_frame = delays[index - 1].at_frame;
            steps.push(Step { after_frame, before_frame: delay.at_frame, frames });
        }
        levelled.push((delay.at_frame as f64, delay.frames - stepped));
    }
    let drift = drifts.then(|| line(&levelled)).flatten().and_then(|line| {
        let (first, last) = (delays.first()?, delays.last()?);
        let growth = line.slope * (last.at_frame - first.at_frame) as f64;
        let clear = growth.abs() > DRIFT.max(4.0 * line.deviation) && line.slope.abs() <= STEEPEST;
        let frames = line.at(first.at_frame as f64);
        clear.then_some(Drift { ppm: line.slope * 1e6, at_frame: first.at_frame, frames })
    });
    (steps, drift)
}

/// Whether the two delays before `index` and the two from there on lie on either side of a jump: a
/// single outlier is not a step.
fn holds(flat: &[f64], index: usize, jump: f64) -> bool {
    let Some(around) = index.checked_sub(2).and_then(|from| flat.get(from..index + 2)) else {
        return false;
    };
    let middle = (around[1] + around[2]) / 2.0;
    let is_above = |frames: f64| (frames > middle) == (jump > 0.0);
    !is_above(around[0]) && is_above(around[3])
}

/// The median of the slopes from one delay to the next, which a few steps do not move.
fn median_slope(delays: &[Delay]) -> f64 {
    let slope = |pair: &[Delay]| {
        (pair[1].frames - pair[0].frames) / (pair[1].at_frame - pair[0].at_frame).max(1) as f64
    };
    // With a single pair, drift and step cannot be distinguished.
    if delays.len() < 3 { 0.0 } else { median(delays.windows(2).map(slope).collect()) }
}

/// A straight line through points, and the deviation of the points from it.
#[derive(Clone, Copy)]
struct Line {
    slope: f64,
    mean: (f64, f64),
    deviation: f64,
}

impl Line {
    fn at(&self, x: f64) -> f64 {
        self.mean.1 + self.slope * (x - self.mean.0)
    }
}

/// Points whose distance from the first line exceeds this multiple of the median distance are
/// ignored as outliers.
const OUTLIER: f64 = 6.0;

/// The least-squares line of all points except outliers.
fn line(points: &[(f64, f64)]) -> Option<Line> {
    let first = robust_line(points)?;
    let distance = |(x, y): (f64, f64)| (y - first.at(x)).abs();
    let far = OUTLIER * median(points.iter().copied().map(distance).collect());
    let near: Vec<_> = points.iter().copied().filter(|point| distance(*point) <= far).collect();
    least_squares(&near)
}

/// The line with the median of the slopes between each point and the one half of all points later
/// (an incomplete form of Theil's method).
fn robust_line(points: &[(f64, f64)]) -> Option<Line> {
    if points.len() < 3 {
        return None;
    }
    let later = points.len() / 2;
    let slope = |(from, to): (&(f64, f64), &(f64, f64))| (to.1 - from.1) / (to.0 - from.0).max(1.0);
    let slope = median(points.iter().zip(&points[later..]).map(slope).collect());
    let level = median(points.iter().map(|(x, y)| y - slope * x).collect());
    Some(Line { slope, mean: (0.0, level), deviation: 0.0 })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn least_squares(points: &[(f64, f64)]) -> Option<Line> {
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>()
        / spread.max(f64::MIN_POSITIVE);
    let rest: f64 = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    Some(Line { slope, mean: (mean_x, mean_y), deviation: (rest / count).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(frames: &[f64], copied: bool) -> Vec<Delay> {
        let at = |index: usize| index * 10_000 + index * index * 7;
        frames
            .iter()
            .enumerate()
            .map(|(index, &frames)| Delay { at_frame: at(index), frames, gain: 1.0, copied })
            .collect()
    }

    #[test]
    fn percentiles_are_delays_that_were_measured() {
        let found = distribution(&delays(&(1..=200).map(f64::from).collect::<Vec<_>>(), true));
        assert_eq!(
            (found.minimum, found.median, found.p99, found.maximum),
            (1.0, 100.0, 198.0, 200.0)
        );
        assert_eq!(distribution(&delays(&[5.0], true)).p99, 5.0);
    }

    #[test]
    fn one_inserted_frame_is_a_step_rather_than_drift() {
        for frames in [
            &[100.0, 100.0, 101.0][..],
            &[100.0, 101.0],
            &[100.0, 101.0, 102.0, 103.0],
            &[9.0, 8.0, 8.0, 8.0],
        ] {
            let (steps, drift) = steps_and_drift(&delays(frames, true), Method::Onsets);
            let expected = frames.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert_eq!((steps.len(), drift), (expected, None), "{frames:?}");
        }
    }

    #[test]
    fn drift_is_distinguished_from_a_step_within_it() {
        let mut drifting = delays(&[0.0; 40], false);
        for (index, delay) in drifting.iter_mut().enumerate() {
            delay.frames =
                480.0 + delay.at_frame as f64 * 1e-4 + if index >= 20 { 3.0 } else { 0.0 };
        }
        let (steps, drift) = steps_and_drift(&drifting, Method::Correlation);
        assert_eq!(steps.len(), 1);
        assert!(
            (steps[0].frames - 3.0).abs() < 1e-6 && steps[0].after_frame == drifting[19].at_frame
        );
        let drift = drift.expect("it drifts");
        assert!(
            (drift.ppm - 100.0).abs() < 0.01 && (drift.frames - 480.0).abs() < 0.01,
            "{drift:?}"
        );
    }

    #[test]
    fn a_single_outlier_is_ignored() {
        let mut drifting = delays(&[0.0; 12], false);
        for (index, delay) in drifting.iter_mut().enumerate() {
            delay.frames =
                480.0 + delay.at_frame as f64 * 1e-4 + if index == 6 { -0.8 } else { 0.0 };
        }
        let (steps, drift) = steps_and_drift(&drifting, Method::Correlation);
        let drift = drift.expect("it drifts");
        assert!(steps.is_empty() && (drift.ppm - 100.0).abs() < 0.01, "{steps:?} {drift:?}");
        // With impulses, every delay counts.
        assert_eq!(steps_and_drift(&drifting, Method::Onsets).0.len(), 2);
    }

    #[test]
    fn a_steady_delay_with_noise_does_not_drift() {
        let noisy = delays(&[10.1, 9.9, 10.0, 10.1, 9.95, 10.05, 10.0, 9.9, 10.1], false);
        assert_eq!(steps_and_drift(&noisy, Method::Onsets), (vec![], None));
    }
}
