//! Linear time code as samples: a function of the transport's position, so that nothing is carried
//! from one cycle to the next but the frame that was computed last.

use super::frame::{BITS, FrameBits};
use crate::time_code::{TimeCode, VideoRate};

/// Half bits of a frame: each bit begins with a change of polarity, and a one has another in its
/// middle.
const HALVES: u32 = 2 * BITS;
/// Duration of a change of polarity, s. SMPTE 12M has 40 µs ± 10 for the middle 80 % of it.
const RISE_S: f64 = 50e-6;

/// Makes linear time code. Thread: cycle.
#[derive(Debug, Clone)]
pub(crate) struct LtcEncoder {
    rate: VideoRate,
    amplitude: f32,
    /// Half bits for each audio frame, as a fraction.
    halves: (u64, u64),
    /// The part of a half bit that a change of polarity takes, at most 1.
    rise: f64,
    /// The frame of video that was computed last.
    index: u64,
    polarities: Polarities,
}

/// Whether the signal is positive in each half bit of a frame. It is negative before the first.
#[derive(Debug, Clone, Copy)]
struct Polarities([u128; 2]);

impl Polarities {
    fn of(bits: FrameBits) -> Self {
        let (mut words, mut positive) = ([0; 2], false);
        for half in 0..HALVES {
            let is_one = bits.0 >> (half / 2) & 1 != 0;
            positive ^= half % 2 == 0 || is_one;
            words[usize::from(half >= BITS)] |= u128::from(positive) << (half % BITS);
        }
        Self(words)
    }

    /// The sign in a half bit. The frame before ends negative, as this one does.
    fn sign(self, half: i64) -> f64 {
        let Ok(half) = u32::try_from(half) else { return -1.0 };
        let is_positive =
            half < HALVES && self.0[usize::from(half >= BITS)] >> (half % BITS) & 1 != 0;
        // The next frame begins positive.
        if is_positive || half >= HALVES { 1.0 } else { -1.0 }
    }
}

impl LtcEncoder {
    /// Makes time code of this rate and amplitude.
    pub(crate) fn new(rate: VideoRate, sample_rate_hz: u32, amplitude: f32) -> Self {
        let (frames, seconds) = rate.fraction_hz();
        let halves =
            (u64::from(frames) * u64::from(HALVES), u64::from(seconds) * u64::from(sample_rate_hz));
        let half_s = halves.1 as f64 / halves.0 as f64 / f64::from(sample_rate_hz);
        Self {
            rate,
            amplitude,
            halves,
            rise: (RISE_S / half_s).min(1.0),
            index: 0,
            polarities: Polarities::of(FrameBits::of(TimeCode::of(0, rate))),
        }
    }

    /// Writes the samples from the transport frame `frame` on; silence if the transport stands.
    pub(crate) fn cycle(&mut self, rolls: bool, frame: u32, samples: &mut [f32]) {
        if !rolls {
            return samples.fill(0.0);
        }
        for (position, sample) in (u64::from(frame)..).zip(samples) {
            *sample = self.amplitude * self.at(position) as f32;
        }
    }

    /// Returns the signal at a transport frame, from -1 to 1.
    fn at(&mut self, position: u64) -> f64 {
        let (times, over) = self.halves;
        let halves = position * times;
        let (number, rest) = (halves / over, halves % over);
        let (index, half) = (number / u64::from(HALVES), number % u64::from(HALVES));
        if index != self.index {
            self.index = index;
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            self.polarities = Polarities::of(FrameBits::of(TimeCode::of(number, self.rate)));
        }
        let (half, part) = (half.cast_signed(), rest as f64 / over as f64);
        let own = self.polarities.sign(half);
        // A change takes place around the boundary of two half bits.
        let (other, distance) = if part < 0.5 { (half - 1, part) } else { (half + 1, 1.0 - part) };
        let nearness = (0.5 - distance / self.rise).max(0.0);
        own + (self.polarities.sign(other) - own) * nearness
    }
}
