//! From a recording to its latency: how many samples lie between a sound and the same sound after
//! it has gone through a system.
//!
//! Nothing here touches a device, a file or a clock.

mod correlation;
mod delays;
mod dropout;
mod error;
mod interpolation;
mod onset;
mod recording;
mod signal;
mod trend;

pub use delays::{Delay, Method};
pub use dropout::{Dropout, Fault};
pub use error::LatencyError;
pub use recording::{Recording, Side};
pub use signal::{Signal, maximum_length_sequence};
pub use trend::{Distribution, Drift, Step};

use dropout::Copy;

/// Everything that a recording says of the system under test.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Hz.
    pub sample_rate_hz: u32,
    /// Frames of the recording.
    pub recorded_frames: usize,
    /// How delays were measured.
    pub method: Method,
    /// Every delay, in the order of its instant.
    pub delays: Vec<Delay>,
    /// Frames of the left channel whose sound was not found again.
    pub lost: Vec<usize>,
    /// Shortest to longest.
    pub distribution: Distribution,
    /// Where the delay changed.
    pub steps: Vec<Step>,
    /// How it grows, if the two channels have clocks of their own.
    pub drift: Option<Drift>,
    /// Whether every stretch that was measured is a copy, sample for sample, so that delays are
    /// whole numbers.
    pub copied: bool,
    /// Whether anything broke the sound.
    pub continuity: Continuity,
}

/// What is known of breaks in the sound.
#[derive(Debug, Clone, PartialEq)]
pub enum Continuity {
    /// Every sample was compared.
    Compared {
        /// How many.
        frames: usize,
        /// Where they differ.
        dropouts: Vec<Dropout>,
    },
    /// The left channel is mostly silent, so that most breaks of the right one cannot be seen.
    Sparse,
    /// The right channel is no copy, sample for sample, of the left one.
    NotACopy,
}

/// A break may lead to a delay this much longer or shorter, seconds.
const LONGEST_S: i64 = 12;
/// Frames on each side of an instant by which the copy is described: many, or few where a break is
/// near.
const RADII: [usize; 2] = [4096, 64];
/// The last bit of the coarsest format in use.
const SIXTEEN_BITS: f64 = 1.0 / 32_768.0;

impl Analysis {
    /// The latency, frames: the middle one, or with drift that at [`Drift::at_frame`].
    #[must_use]
    pub fn frames(&self) -> f64 {
        self.drift.map_or(self.distribution.median, |drift| drift.frames)
    }

    /// Frames as milliseconds of the recording's clock.
    #[must_use]
    pub fn milliseconds(&self, frames: f64) -> f64 {
        frames * 1000.0 / f64::from(self.sample_rate_hz)
    }

    /// What the right channel has of the left, dB, and whether the other way up.
    #[must_use]
    pub fn gain(&self) -> (f64, bool) {
        let mut gains: Vec<f64> = self.delays.iter().map(|delay| delay.gain).collect();
        gains.sort_unstable_by(f64::total_cmp);
        let gain = gains.get(gains.len() / 2).copied().unwrap_or(0.0);
        (20.0 * gain.abs().max(1e-10).log10(), gain < 0.0)
    }

    /// Whether nothing was lost, inserted or broken, as far as the recording shows.
    #[must_use]
    pub fn is_unbroken(&self) -> bool {
        let unbroken = !matches!(&self.continuity, Continuity::Compared { dropouts, .. } if !dropouts.is_empty());
        unbroken && self.steps.is_empty() && self.lost.is_empty() && self.damaged() == 0
    }

    /// Impulses or stretches that came back otherwise than they were sent, where most are copies,
    /// sample for sample.
    #[must_use]
    pub fn damaged(&self) -> usize {
        let damaged = self.delays.iter().filter(|delay| !delay.copied).count();
        if 2 * damaged < self.delays.len() { damaged } else { 0 }
    }
}

/// Measures how much later the right channel has the sound of the left one.
///
/// # Errors
/// [`LatencyError`]: `NotFound`, `Ambiguous`, `Chance`, `Swapped`. No number is better than one
/// that was not measured.
pub fn analyse(recording: &Recording) -> Result<Analysis, LatencyError> {
    let measured = delays::measure(recording)?;
    let (steps, drift) = trend::steps_and_drift(&measured.delays, measured.method);
    Ok(Analysis {
        sample_rate_hz: recording.sample_rate_hz(),
        recorded_frames: recording.frames(),
        method: measured.method,
        distribution: trend::distribution(&measured.delays),
        continuity: continuity(recording, &measured.delays),
        copied: measured.delays.iter().all(|delay| delay.copied),
        steps,
        drift,
        delays: measured.delays,
        lost: measured.lost,
    })
}

fn continuity(recording: &Recording, delays: &[Delay]) -> Continuity {
    let Some((from, to)) = recording.dense_part() else {
        return Continuity::Sparse;
    };
    let Some(first) = delays.iter().find(|delay| delay.copied) else { return Continuity::NotACopy };
    let delay = first.frames as i64;
    let copy = RADII.into_iter().find_map(|radius| copy_near(recording, first, delay, radius));
    let Some(copy) = copy else {
        return Continuity::NotACopy;
    };
    let (dropouts, frames) = copy.compare(from, to, delay);
    Continuity::Compared { frames, dropouts }
}

/// How the right channel copies the left around a delay that was measured: exact up to the noise
/// that is found there.
fn copy_near<'a>(
    recording: &'a Recording,
    measured: &Delay,
    delay: i64,
    radius: usize,
) -> Option<Copy<'a>> {
    let (left, right) = (&recording.left, &recording.right);
    let from = measured.at_frame.saturating_sub(radius);
    let sent = left.get(from..(measured.at_frame + radius).min(left.len()))?;
    let at = usize::try_from(from as i64 + delay).ok()?;
    let got = right.get(at..at + sent.len())?;
    let count = sent.len() as f64;
    let pairs = || sent.iter().zip(got);
    let offset = pairs().map(|(sent, got)| got - measured.gain * sent).sum::<f64>() / count;
    let rest = |(sent, got): (&f64, &f64)| got - measured.gain * sent - offset;
    let noise = (pairs().map(|pair| rest(pair).powi(2)).sum::<f64>() / count).sqrt();
    let level =
        (sent.iter().map(|sample| (measured.gain * sample).powi(2)).sum::<f64>() / count).sqrt();
    // Eight deviations of a noise are reached once in 10^15 samples; a float is rounded, and an
    // integer more so.
    let last_bit = if noise > 1e-6 * level { SIXTEEN_BITS.min(level / 8.0) } else { 0.0 };
    let rounding = 1e-5 * level + last_bit;
    let tolerance = 8.0 * noise + rounding;
    let silence = offset + measured.gain * recording.left_silence;
    let longest = LONGEST_S * i64::from(recording.sample_rate_hz());
    let copy = Copy { left, right, gain: measured.gain, offset, tolerance, silence, longest };
    (tolerance < level / 4.0).then_some(copy)
}
