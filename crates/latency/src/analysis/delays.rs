//! Measures the delay at many points of a recording.

use std::ops::Range;

use super::correlation::{Match, correlate, deciding_point};
use super::{LatencyError, Recording, onset};

/// How delays were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// From the onsets of impulses.
    Onsets,
    /// From the correlation of stretches of sound.
    Correlation,
}

/// The delay at one point of the recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delay {
    /// Where the sound is on the left channel, frames from the beginning of the recording.
    pub at_frame: usize,
    /// How much later it is on the right one, frames. A whole number where the right channel is a
    /// copy of the left.
    pub frames: f64,
    /// Gain from the left channel to the right one; −1 is an inverted copy.
    pub gain: f64,
    /// Whether the right channel is a sample-exact copy there, apart from gain and offset.
    pub copied: bool,
}

/// All delays of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Delays {
    pub method: Method,
    /// Ordered by their position; at least one.
    pub delays: Vec<Delay>,
    /// Frames of the left channel whose sound is not in the right channel.
    pub lost: Vec<usize>,
}

/// Clarity from which a match counts: chance reaches it once in 10^9 recordings of a million lags.
const CLARITY: f64 = 8.0;
/// The same for a stretch, searched for near the delay of the one before, among fewer lags.
const STRETCH_CLARITY: f64 = 7.0;
/// A sound whose energy is in fewer samples consists of a few clicks.
const CLICKS: f64 = 32.0;
/// A second match of at least this relative height makes the first one ambiguous.
const RIVAL: f64 = 0.7;
/// Frames correlated to find the first delay: more frames tolerate more noise, fewer tolerate more
/// drift.
const FIRST_LENGTHS: [usize; 3] = [1 << 18, 1 << 16, 1 << 14];
/// Number of starting points to try with a single stretch, where the delay changes so early that
/// several stretches together have no common delay.
const LATER: usize = 4;
/// Frames of a stretch, and the largest difference of its delay from that of the one before.
const STRETCH: usize = 1 << 14;
const LONGEST_STRETCH: usize = 3 << 14;
const STRETCH_REACH: i64 = 1 << 11;
/// The longest delay to search for, seconds.
const LONGEST_S: usize = 12;
/// Maximum number of new searches after the delay was lost.
const SEARCHES: usize = 24;
/// Frames correlated around an impulse, and the largest deviation from its expected delay.
const IMPULSE_RADIUS: usize = 64;
const IMPULSE_REACH: usize = 32;
/// Power of the residue, as a fraction of the copy's power, up to which it counts as rounding: a
/// shift by a two-hundredth of a sample already leaves more.
const ROUNDING: f64 = 1e-4;

/// Measures all delays.
pub fn measure(recording: &Recording) -> Result<Delays, LatencyError> {
    let (left, right) = (&recording.left[..], &recording.right[..]);
    let rate = recording.sample_rate_hz();
    let (sent, received) = (onset::impulses(left, rate), onset::impulses(right, rate));
    if !sent.is_empty() && !received.is_empty() {
        let found = by_onsets(recording, &sent, &received);
        // Breaks are so frequent that no delay fits many impulses. The sound between them may still
        // be found.
        if found.is_ok() || recording.dense_part().is_none() {
            return found;
        }
    }
    // Correlation of clicks has as many high peaks as there are pairs of clicks, related or not.
    let clicks = [left, right].map(onset::effective_samples);
    if clicks.iter().all(|clicks| *clicks < CLICKS) {
        return Err(LatencyError::Chance { agreeing: 1, clicks: clicks[0].round() as usize });
    }
    let first = first_delay(recording, active_from(left))?;
    Ok(by_correlation(recording, first))
}

/// The first frame of the left channel with enough sound to correlate.
fn active_from(left: &[f64]) -> usize {
    let highest = left.iter().fold(0.0_f64, |peak, sample| peak.max(sample.abs()));
    left.iter().position(|sample| sample.abs() > highest / 8.0).unwrap_or(0)
}

/// Finds the delay at frame `from` among all possible ones.
fn first_delay(recording: &Recording, from: usize) -> Result<Match, LatencyError> {
    let mut failure = None;
    let later = (1..LATER).map(|index| (from + index * STRETCH, STRETCH));
    for (from, length) in FIRST_LENGTHS.map(|length| (from, length)).into_iter().chain(later) {
        if from + STRETCH / 2 >= recording.frames() && failure.is_some() {
            break;
        }
        match first_delay_of(recording, from, length) {
            Ok(found) => return Ok(found),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or(LatencyError::NotFound { clarity: 0.0, needed: CLARITY }))
}

fn first_delay_of(
    recording: &Recording,
    from: usize,
    length: usize,
) -> Result<Match, LatencyError> {
    let (left, right) = (&recording.left, &recording.right);
    let longest = LONGEST_S * recording.sample_rate_hz() as usize;
    let reference = &left[from..(from + length).min(left.len())];
    // Also searched equally far ahead, to distinguish a right channel that is early from one that
    // is unrelated.
    let back = from.min(length);
    let received = &right[from - back..(from + length + longest).min(right.len())];
    let correlation = correlate(reference, received);
    let not_found = |clarity| LatencyError::NotFound { clarity, needed: CLARITY };
    let (least, most) = (1 - reference.len() as i64, received.len() as i64);
    let found = correlation.best(least, most).ok_or_else(|| not_found(0.0))?;
    let shifted = |lag: i64| lag - back as i64;
    if found.clarity < CLARITY {
        return Err(not_found(found.clarity));
    }
    let lag = shifted(found.lag);
    let (rival, height) = found.rival;
    if height > RIVAL && !begins_together(recording, lag) {
        return Err(LatencyError::Ambiguous { first_frames: lag, second_frames: shifted(rival) });
    }
    if lag < -1 {
        return Err(LatencyError::Swapped { frames: -lag });
    }
    Ok(Match { lag, exact_lag: found.exact_lag - back as f64, ..found })
}

/// Whether both channels start from silence, `lag` frames apart: then even a sound that repeats
/// itself has only one delay.
fn begins_together(recording: &Recording, lag: i64) -> bool {
    let silence = (recording.sample_rate_hz() / 100) as usize;
    let beginnings =
        (onset::beginning(&recording.left, silence), onset::beginning(&recording.right, silence));
    let (Some(left), Some(right)) = beginnings else { return false };
    (right as i64 - left as i64 - lag).abs() <= 16
}

/// A delay that would explain impulses of the right channel: how many, and how far off they are in
/// total and at most.
struct Explanation {
    delay: i64,
    explained: usize,
    off: i64,
    widest: i64,
}

/// Clicks are considered related if unrelated ones would agree less often than this.
const CHANCE: f64 = 1e-3;

impl Explanation {
    /// How many explanations as good as this one are expected by chance from that many unrelated
    /// clicks on each channel. A single click that comes back once has only one explanation, which
    /// is accepted.
    fn by_chance(&self, sent: usize, received: usize, frames: usize) -> f64 {
        if (sent, received) == (1, 1) {
            return 0.0;
        }
        // One click agrees because the delay was chosen to fit it. Each of the others agrees
        // independently.
        let others = (self.explained - 1) as i32;
        let each = (received as f64 * (2 * self.widest + 1) as f64 / frames as f64).min(1.0);
        let choices = (0..others).fold(1.0, |choices, index| {
            choices * (sent as f64 - 1.0 - f64::from(index)) / (f64::from(index) + 1.0)
        });
        sent as f64 * received as f64 * choices * each.powi(others)
    }
}

/// Number of impulses on each channel from which the first delay is found.
const TRIED: usize = 32;

/// How far an impulse may be from where the delay of another one, `distance` frames away, predicts
/// it: 500 ppm.
fn allowance(distance: usize) -> i64 {
    2 + distance as i64 / 2_000
}

/// The delay that explains the most of the first impulses.
fn first_impulse_delay(
    recording: &Recording,
    sent: &[usize],
    received: &[usize],
) -> Result<i64, LatencyError> {
    let frames = recording.frames();
    let tried = &sent[..sent.len().min(TRIED)];
    let longest = LONGEST_S * recording.sample_rate_hz() as usize;
    let explain = |anchor: usize, delay: i64| {
        let mut explanation = Explanation { delay, explained: 0, off: 0, widest: 0 };
        for &frame in tried {
            let off = distance_to_nearest(received, frame as i64 + delay);
            if off <= allowance(frame.abs_diff(anchor)) {
                explanation.explained += 1;
                explanation.off += off;
                explanation.widest = explanation.widest.max(off);
            }
        }
        explanation
    };
    let pairs = tried.iter().flat_map(|&from| received.iter().map(move |&to| (from, to)));
    let close = pairs.filter(|(from, to)| from.abs_diff(*to) <= longest);
    let mut explanations: Vec<Explanation> =
        close.map(|(from, to)| explain(from, to as i64 - from as i64)).collect();
    explanations
        .sort_by_key(|explanation| (std::cmp::Reverse(explanation.explained), explanation.off));
    let not_found = LatencyError::NotFound { clarity: 0.0, needed: CLARITY };
    let best = explanations.first().ok_or(not_found)?;
    // Impulses that would come back after the end count neither for nor against a delay.
    let possible = tried.iter().filter(|frame| **frame as i64 + best.delay < frames as i64).count();
    let needed = possible.div_ceil(2);
    if best.explained < needed {
        return Err(LatencyError::NotFound {
            clarity: best.explained as f64,
            needed: needed as f64,
        });
    }
    // Where frames were lost or inserted, another delay explains other impulses. Only a delay that
    // explains the same ones is a rival.
    let apart = allowance(frames).max(IMPULSE_RADIUS as i64);
    let explains = |delay: i64, frame: usize| {
        distance_to_nearest(received, frame as i64 + delay) <= allowance(0)
    };
    let as_well = |other: i64| {
        let both =
            tried.iter().filter(|frame| explains(best.delay, **frame) && explains(other, **frame));
        both.count() as f64 > RIVAL * best.explained as f64
    };
    let others = explanations.iter().filter(|other| (other.delay - best.delay).abs() > apart);
    if let Some(rival) = others.take(TRIED).find(|other| as_well(other.delay))
        && !begins_together(recording, best.delay)
    {
        return Err(LatencyError::Ambiguous {
            first_frames: best.delay,
            second_frames: rival.delay,
        });
    }
    if best.by_chance(tried.len(), received.len(), frames) > CHANCE {
        return Err(LatencyError::Chance { agreeing: best.explained, clicks: sent.len() });
    }
    if best.delay < -1 {
        return Err(LatencyError::Swapped { frames: -best.delay });
    }
    Ok(best.delay)
}

fn distance_to_nearest(places: &[usize], wanted: i64) -> i64 {
    let after = places.partition_point(|place| (*place as i64) < wanted);
    let candidates = [after.checked_sub(1), Some(after)];
    let distances = candidates.into_iter().flatten().filter_map(|index| places.get(index));
    distances.map(|place| (*place as i64 - wanted).abs()).min().unwrap_or(i64::MAX)
}

fn by_onsets(
    recording: &Recording,
    sent: &[usize],
    received: &[usize],
) -> Result<Delays, LatencyError> {
    let (left, right) = (&recording.left[..], &recording.right[..]);
    let mut expected = first_impulse_delay(recording, sent, received)?;
    // Beyond half the distance between impulses, the nearest one is a different impulse.
    let gap = sent.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(left.len());
    let reach = (gap / 2).max(1) as i64;
    let (mut delays, mut lost) = (Vec::new(), Vec::new());
    for &frame in sent {
        let wanted = frame as i64 + expected;
        if wanted + reach.min(IMPULSE_RADIUS as i64) >= right.len() as i64 {
            continue;
        }
        let nearest = received.iter().min_by_key(|found| (**found as i64 - wanted).abs());
        match nearest.filter(|found| (**found as i64 - wanted).abs() < reach) {
            Some(&found) => {
                expected = found as i64 - frame as i64;
                delays.push(around_impulse(left, right, frame, expected));
            }
            None => lost.push(frame),
        }
    }
    if delays.is_empty() {
        return Err(LatencyError::NotFound { clarity: 0.0, needed: CLARITY });
    }
    Ok(Delays { method: Method::Onsets, delays, lost })
}

/// The delay of one impulse, near `lag`, by correlation of its surroundings.
fn around_impulse(left: &[f64], right: &[f64], frame: usize, lag: i64) -> Delay {
    let from = frame.saturating_sub(IMPULSE_RADIUS);
    let window = &left[from..(frame + IMPULSE_RADIUS).min(left.len())];
    if let Some(gain) = copied(window, right, from as i64 + lag) {
        return Delay { at_frame: frame, frames: lag as f64, gain, copied: true };
    }
    let reach = 2 * IMPULSE_REACH as i64;
    let correlation: Vec<f64> = (-reach..=reach)
        .map(|offset| {
            let at = from as i64 + lag + offset;
            window
                .iter()
                .enumerate()
                .map(|(index, sample)| sample * sample_at(right, at + index as i64))
                .sum()
        })
        .collect();
    let near = IMPULSE_REACH..correlation.len() - IMPULSE_REACH;
    let best =
        near.max_by(|a, b| correlation[*a].abs().total_cmp(&correlation[*b].abs())).unwrap_or(0);
    let (position, value) = super::interpolation::peak(&correlation, best);
    let energy: f64 = window.iter().map(|sample| sample * sample).sum();
    let frames = lag as f64 + position - reach as f64;
    Delay { at_frame: frame, frames, gain: value / energy.max(f64::MIN_POSITIVE), copied: false }
}

fn sample_at(samples: &[f64], index: i64) -> f64 {
    usize::try_from(index).ok().and_then(|index| samples.get(index)).copied().unwrap_or(0.0)
}

/// The gain of `window` in the samples from `at` on, if they are a copy of it apart from gain and
/// offset.
fn copied(window: &[f64], right: &[f64], at: i64) -> Option<f64> {
    let at = usize::try_from(at).ok()?;
    let received = right.get(at..at + window.len())?;
    let count = window.len() as f64;
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / count;
    let (sent_mean, received_mean) = (mean(window), mean(received));
    let pairs =
        || window.iter().zip(received).map(|(sent, got)| (sent - sent_mean, got - received_mean));
    let energy: f64 = pairs().map(|(sent, _)| sent * sent).sum();
    let gain = pairs().map(|(sent, got)| sent * got).sum::<f64>() / energy.max(f64::MIN_POSITIVE);
    let rest: f64 = pairs().map(|(sent, got)| (got - gain * sent).powi(2)).sum();
    (rest <= ROUNDING * gain * gain * energy && gain != 0.0).then_some(gain)
}

fn by_correlation(recording: &Recording, first: Match) -> Delays {
    let (left, right) = (&recording.left[..], &recording.right[..]);
    let (mut expected, mut delays, mut lost, mut searches) = (first.lag, Vec::new(), Vec::new(), 0);
    for stretch in recording.sounds().into_iter().flat_map(stretches) {
        let (from, window) = (stretch.start, &left[stretch]);
        if from as i64 + expected + window.len() as i64 > right.len() as i64 {
            continue;
        }
        let mut found = stretch_delay(window, right, from, expected);
        if found.is_none() && searches < SEARCHES {
            searches += 1;
            let again = first_delay_of(recording, from, window.len());
            found = again.ok().and_then(|again| stretch_delay(window, right, from, again.lag));
        }
        match found {
            Some(delay) => {
                expected = delay.frames.round() as i64;
                delays.push(delay);
            }
            None => lost.push(from + window.len() / 2),
        }
    }
    if delays.is_empty() {
        // The sound is shorter than a stretch, or so sparse that only the whole of it can be found.
        let gain = if first.inverted { -1.0 } else { 1.0 };
        delays.push(Delay {
            at_frame: active_from(left),
            frames: first.exact_lag,
            gain,
            copied: false,
        });
        lost.clear();
    }
    Delays { method: Method::Correlation, delays, lost }
}

/// Splits a long sound into stretches. A short one, such as a single sweep, is kept whole, so that
/// each delay is that of one sound.
fn stretches(sound: Range<usize>) -> Vec<Range<usize>> {
    if sound.len() <= LONGEST_STRETCH {
        return vec![sound];
    }
    let pieces = sound.clone().step_by(STRETCH).map(|from| from..(from + STRETCH).min(sound.end));
    pieces.filter(|piece| piece.len() >= STRETCH / 2).collect()
}

/// The delay of the stretch `window`, which begins at `from`, if there is a clear match near
/// `expected`.
fn stretch_delay(window: &[f64], right: &[f64], from: usize, expected: i64) -> Option<Delay> {
    let at_frame = from + window.len() / 2;
    if let Some(gain) = copied(window, right, from as i64 + expected) {
        return Some(Delay { at_frame, frames: expected as f64, gain, copied: true });
    }
    let begin = (from as i64 + expected - STRETCH_REACH).max(0);
    let end =
        (from as i64 + expected + window.len() as i64 + STRETCH_REACH).clamp(0, right.len() as i64);
    let received = right.get(begin as usize..end as usize).filter(|samples| !samples.is_empty())?;
    let offset = begin - from as i64;
    let correlation = correlate(window, received);
    let near = expected - offset;
    let found = correlation.best(near - STRETCH_REACH, near + STRETCH_REACH)?;
    if found.clarity < STRETCH_CLARITY || found.rival.1 > RIVAL {
        return None;
    }
    let lag = found.lag + offset;
    if let Some(gain) = copied(window, right, from as i64 + lag) {
        return Some(Delay { at_frame, frames: lag as f64, gain, copied: true });
    }
    let pairs = || {
        window
            .iter()
            .enumerate()
            .map(|(i, sent)| (sent, sample_at(right, from as i64 + lag + i as i64)))
    };
    let energy: f64 = window.iter().map(|sample| sample * sample).sum();
    let gain = pairs().map(|(sent, got)| sent * got).sum::<f64>() / energy.max(f64::MIN_POSITIVE);
    let at_frame = from + deciding_point(window).round() as usize;
    Some(Delay { at_frame, frames: found.exact_lag + offset as f64, gain, copied: false })
}
