//! Finds the latency in a recording: how many samples lie between a sound and the same sound after
//! it has passed through a system.
//!
//! This module uses no device, file or clock.

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

/// Everything that a recording shows about the system under test.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Hz.
    pub sample_rate_hz: u32,
    /// Frames of the recording.
    pub recorded_frames: usize,
    /// How delays were measured.
    pub method: Method,
    /// All delays, ordered by their position in the recording.
    pub delays: Vec<Delay>,
    /// Frames of the left channel whose sound is not in the right channel.
    pub lost: Vec<usize>,
    /// Shortest to longest delay.
    pub distribution: Distribution,
    /// Where the delay changed.
    pub steps: Vec<Step>,
    /// How the delay grows, if the two channels have different clocks.
    pub drift: Option<Drift>,
    /// Whether every measured stretch is a sample-exact copy, so that delays are whole numbers.
    pub copied: bool,
    /// Whether anything broke the sound.
    pub continuity: Continuity,
}

/// What is known about breaks in the sound.
#[derive(Debug, Clone, PartialEq)]
pub enum Continuity {
    /// Every sample was compared.
    Compared {
        /// Number of frames compared.
        frames: usize,
        /// Where the channels differ.
        dropouts: Vec<Dropout>,
    },
    /// The left channel is mostly silent, so most breaks in the right one cannot be seen.
    Sparse,
    /// The right channel is not a sample-exact copy of the left one.
    NotACopy,
}

/// Largest change of the delay at a break, seconds.
const LONGEST_S: i64 = 12;
/// Frames on each side of a delay from which the copy's gain and offset are estimated: many, or few
/// where a break is near.
const RADII: [usize; 2] = [4096, 64];
/// The last bit of the coarsest format in use.
const SIXTEEN_BITS: f64 = 1.0 / 32_768.0;

impl Analysis {
    /// The latency, frames: the median delay, or, with drift, the delay at [`Drift::at_frame`].
    #[must_use]
    pub fn frames(&self) -> f64 {
        self.drift.map_or(self.distribution.median, |drift| drift.frames)
    }

    /// Converts frames to milliseconds of the recording's clock.
    #[must_use]
    pub fn milliseconds(&self, frames: f64) -> f64 {
        frames * 1000.0 / f64::from(self.sample_rate_hz)
    }

    /// Gain from the left channel to the right one, dB, and whether the right one is inverted.
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

    /// Number of impulses or stretches that came back altered, where most are sample-exact copies.
    #[must_use]
    pub fn damaged(&self) -> usize {
        let damaged = self.delays.iter().filter(|delay| !delay.copied).count();
        if 2 * damaged < self.delays.len() { damaged } else { 0 }
    }
}

/// Measures how much later the sound of the left channel occurs in the right one.
///
/// # Errors
/// [`LatencyError`]: `NotFound`, `Ambiguous`, `Chance`, `Swapped`. An uncertain result is an error
/// rather than a guess.
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

/// Describes how the right channel copies the left one around a measured delay, exact up to the
/// noise found there.
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
    // Gaussian noise exceeds eight standard deviations once in 10^15 samples. Floats are rounded,
    // and integers more so.
    let last_bit = if noise > 1e-6 * level { SIXTEEN_BITS.min(level / 8.0) } else { 0.0 };
    let rounding = 1e-5 * level + last_bit;
    let tolerance = 8.0 * noise + rounding;
    let silence = offset + measured.gain * recording.left_silence;
    let longest = LONGEST_S * i64::from(recording.sample_rate_hz());
    let copy = Copy { left, right, gain: measured.gain, offset, tolerance, silence, longest };
    (tolerance < level / 4.0).then_some(copy)
}
