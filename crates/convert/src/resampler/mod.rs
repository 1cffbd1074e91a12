//! Another rate, by a fixed ratio.
//!
//! What comes out is a function of the position: it does not depend on how the input was cut, and a
//! restart at any position gives the same bits.

mod blocks;
mod points;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use blocks::Blocks;
use points::Points;

use crate::planes::Emit;
use crate::{ConvertError, Filter, MAX_RATE_HZ};

/// The greatest magnitude that is resampled: 96 dB above full scale, beyond what sound has.
const MAX_LEVEL: f32 = 65_536.0;
/// The last position that a stream can begin at: centuries after its beginning.
const MAX_POSITION: u64 = 1 << 48;

/// Rates that are further apart are refused: the filter would be as many times longer.
const MOST_APART: u64 = 256;

/// Resamples planar frames.
pub(crate) trait Resampler: Debug + Send {
    /// Returns the position of the next output frame.
    fn position(&self) -> u64;

    /// Returns the output frames up to the end of the input that have not been passed on.
    fn held_frames(&self) -> u64;

    /// Returns the most output frames that are ever held.
    fn latency_frames(&self) -> u64;

    /// Returns the most input frames for which no more than `frames` come out.
    fn most_input(&self, frames: u64) -> u64;

    /// Returns the fewest input frames for which `frames` or more come out.
    fn fewest_input(&self, frames: u64) -> u64;

    /// Begins again at an output frame, and returns the input frame from which on the input has to
    /// be pushed: somewhat before the one that corresponds to it.
    fn start_at(&mut self, position: u64) -> u64;

    /// Resamples frames, and passes on what is ready, in pieces.
    fn push(&mut self, planes: &[&[f32]], emit: Emit<'_>);

    /// Passes on what is left, as if silence followed, and begins again at position 0. The output
    /// ends with the last frame that begins before the input's end.
    fn flush(&mut self, emit: Emit<'_>);
}

/// Returns a resampler of `channels` channels. Allocates.
pub(crate) fn resampler(
    channels: usize,
    from_hz: u32,
    to_hz: u32,
    filter: Filter,
) -> Result<Box<dyn Resampler>, ConvertError> {
    check_rate(from_hz)?;
    check_rate(to_hz)?;
    let ratio = Ratio::new(from_hz, to_hz);
    if ratio.input.max(ratio.output) > ratio.input.min(ratio.output) * MOST_APART {
        return Err(ConvertError::Ratio(from_hz, to_hz));
    }
    if let Some(blocks) = Blocks::new(channels, ratio, filter) {
        return Ok(Box::new(blocks));
    }
    Ok(Box::new(Points::new(channels, ratio, filter)))
}

/// Refuses a rate that no program has.
pub(crate) fn check_rate(rate_hz: u32) -> Result<(), ConvertError> {
    if (1..=MAX_RATE_HZ).contains(&rate_hz) { Ok(()) } else { Err(ConvertError::Rate(rate_hz)) }
}

/// Two rates in lowest terms: `input` frames of input are exactly as long as `output` of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ratio {
    input: u64,
    output: u64,
}

impl Ratio {
    fn new(from_hz: u32, to_hz: u32) -> Self {
        let divisor = divisor(from_hz, to_hz);
        Self { input: (from_hz / divisor).into(), output: (to_hz / divisor).into() }
    }

    /// Returns the output frames that begin before `input` frames of input have ended: their number
    /// times the ratio, rounded up.
    fn output_frames(self, input: u64) -> u64 {
        let frames = (u128::from(input) * u128::from(self.output)).div_ceil(self.input.into());
        u64::try_from(frames).unwrap_or(u64::MAX)
    }
}

/// Returns the greatest common divisor.
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Bounds samples so that they can be summed. Programs may send any bits; one NaN would spoil a
/// whole block, and `rubato` panics if a sum is NaN.
fn bound(samples: &mut [f32]) {
    dsp::scrub(samples);
    for sample in samples {
        *sample = sample.clamp(-MAX_LEVEL, MAX_LEVEL);
    }
}
