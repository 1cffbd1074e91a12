//! What a row of delays says: a latency, a difference between two clocks, frames that were inserted or lost.

use crate::Delay;

/// The delays of a recording, frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// The shortest.
    pub minimum: f64,
    /// Half are shorter.
    pub median: f64,
    /// All but a hundredth are shorter.
    pub p99: f64,
    /// The longest.
    pub maximum: f64,
    /// How many were measured.
    pub count: usize,
}

/// The right channel's clock runs slower than the left's (or faster, where negative).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Growth of the delay, frames for each million.
    pub ppm: f64,
    /// The delay at this frame of the left channel,
    pub at_frame: usize,
    /// in frames.
    pub frames: f64,
}

/// The delay changed between one instant and the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The last frame of the left channel with the delay before.
    pub after_frame: usize,
    /// The first with the new one.
    pub before_frame: usize,
    /// How many frames longer it is now (or shorter, where negative).
    pub frames: f64,
}

/// Of at least one delay.
pub fn distribution(delays: &[Delay]) -> Distribution {
    let mut frames: Vec<f64> = delays.iter().map(|delay| delay.frames).collect();
    frames.sort_unstable_by(f64::total_cmp);
    // Nearest rank: every figure is one that was measured.
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

/// A jump of the delay beyond this, frames, is a step.
const STEP: f64 = 0.5;
/// And beyond so many times the usual difference between one delay and the next, where they are no copies.
const UNCERTAIN: f64 = 5.0;
/// A drift beyond this, frames over the whole recording, is one.
const DRIFT: f64 = 0.5;

/// Steps between delays, and the drift that remains without them.
///
/// Copies, sample for sample, do not drift: where one changes its delay, frames were inserted or lost.
pub fn steps_and_drift(delays: &[Delay]) -> (Vec<Step>, Option<Drift>) {
    let drifts = delays.iter().any(|delay| !delay.copied);
    let slope = if drifts { median_slope(delays) } else { 0.0 };
    let jump = |pair: &[Delay]| {
        pair[1].frames - pair[0].frames - slope * (pair[1].at_frame - pair[0].at_frame) as f64
    };
    let mut jumps: Vec<f64> = delays.windows(2).map(|pair| jump(pair).abs()).collect();
    jumps.sort_unstable_by(f64::total_cmp);
    // What is uncertain by so much from one instant to the next does not show a smaller step.
    let uncertain = if drifts { jumps.get(jumps.len() / 2).copied().unwrap_or(0.0) } else { 0.0 };
    let least_step = STEP.max(UNCERTAIN * uncertain);
    let mut steps = Vec::new();
    let mut stepped = 0.0;
    let mut levelled: Vec<(f64, f64)> = Vec::new();
    for (index, delay) in delays.iter().enumerate() {
        if let Some(pair) = index.checked_sub(1).and_then(|before| delays.get(before..=index)) {
            let frames = jump(pair);
            if frames.abs() > least_step {
                stepped += frames;
                steps.push(Step { after_frame: pair[0].at_frame, before_frame: delay.at_frame, frames });
            }
        }
        levelled.push((delay.at_frame as f64, delay.frames - stepped));
    }
    let drift = drifts.then(|| line(&levelled)).flatten().and_then(|(slope, deviation)| {
        let (first, last) = (delays.first()?, delays.last()?);
        let growth = slope * (last.at_frame - first.at_frame) as f64;
        let clear = growth.abs() > DRIFT.max(4.0 * deviation);
        let mean =
            levelled.iter().map(|(at, frames)| frames - slope * at).sum::<f64>() / levelled.len() as f64;
        let frames = mean + slope * first.at_frame as f64;
        clear.then_some(Drift { ppm: slope * 1e6, at_frame: first.at_frame, frames })
    });
    (steps, drift)
}

/// The middle of the slopes from one delay to the next: a few steps do not move it.
fn median_slope(delays: &[Delay]) -> f64 {
    let mut slopes: Vec<f64> = delays
        .windows(2)
        .map(|pair| (pair[1].frames - pair[0].frames) / (pair[1].at_frame - pair[0].at_frame).max(1) as f64)
        .collect();
    slopes.sort_unstable_by(f64::total_cmp);
    // Of a single pair it cannot be told whether it drifts or steps.
    if slopes.len() < 2 { 0.0 } else { slopes[slopes.len() / 2] }
}

/// Slope of the least-squares line, and the deviation of the points from it.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope =
        points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread.max(f64::MIN_POSITIVE);
    let rest: f64 = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    Some((slope, (rest / count).sqrt()))
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
        assert_eq!((found.minimum, found.median, found.p99, found.maximum), (1.0, 100.0, 198.0, 200.0));
        assert_eq!(distribution(&delays(&[5.0], true)).p99, 5.0);
    }

    #[test]
    fn one_frame_inserted_in_secret_is_a_step_and_no_drift() {
        for frames in [
            &[100.0, 100.0, 101.0][..],
            &[100.0, 101.0],
            &[100.0, 101.0, 102.0, 103.0],
            &[9.0, 8.0, 8.0, 8.0],
        ] {
            let (steps, drift) = steps_and_drift(&delays(frames, true));
            let expected = frames.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert_eq!((steps.len(), drift), (expected, None), "{frames:?}");
        }
    }

    #[test]
    fn drift_is_told_apart_from_a_step_within_it() {
        let mut drifting = delays(&[0.0; 40], false);
        for (index, delay) in drifting.iter_mut().enumerate() {
            delay.frames = 480.0 + delay.at_frame as f64 * 1e-4 + if index >= 20 { 3.0 } else { 0.0 };
        }
        let (steps, drift) = steps_and_drift(&drifting);
        assert_eq!(steps.len(), 1);
        assert!((steps[0].frames - 3.0).abs() < 1e-6 && steps[0].after_frame == drifting[19].at_frame);
        let drift = drift.expect("it drifts");
        assert!((drift.ppm - 100.0).abs() < 0.01 && (drift.frames - 480.0).abs() < 0.01, "{drift:?}");
    }

    #[test]
    fn a_steady_delay_that_is_measured_with_some_noise_does_not_drift() {
        let noisy = delays(&[10.1, 9.9, 10.0, 10.1, 9.95, 10.05, 10.0, 9.9, 10.1], false);
        assert_eq!(steps_and_drift(&noisy), (vec![], None));
    }
}
