//! Recordings with a known delay.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::f64::consts::PI;

use consort_latency::Signal;

/// A noise source with a seed.
pub struct Noise(pub u64);

impl Noise {
    /// Uniform in 0..1.
    pub fn uniform(&mut self) -> f64 {
        // xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators").
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Gaussian with deviation 1.
    pub fn gaussian(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (2.0 * PI * self.uniform()).cos()
    }
}

/// `frames` of `signal` after `lead` frames of silence, and `tail` frames of silence after it.
pub fn direct(signal: Signal, lead: usize, frames: usize, tail: usize, rate_hz: u32) -> Vec<f32> {
    let mut samples = vec![0.0; lead];
    samples.extend(signal.samples(frames, rate_hz));
    samples.resize(lead + frames + tail, 0.0);
    samples
}

/// `samples`, `delay` frames later, of the same length.
pub fn delayed(samples: &[f32], delay: usize) -> Vec<f32> {
    let mut later = vec![0.0; delay.min(samples.len())];
    later.extend(&samples[..samples.len() - later.len()]);
    later
}

/// `samples` as a converter with another clock records them: frame n is the value at `(n − delay) ·
/// (1 − ppm/10^6)`.
pub fn resampled(samples: &[f32], delay: f64, ppm: f64) -> Vec<f32> {
    const RADIUS: i64 = 24;
    (0..samples.len())
        .map(|frame| {
            let position = (frame as f64 - delay) * (1.0 - ppm * 1e-6);
            let nearest = position.round() as i64;
            let sum: f64 = (nearest - RADIUS..=nearest + RADIUS)
                .filter_map(|index| Some((index, *samples.get(usize::try_from(index).ok()?)?)))
                .map(|(index, sample)| {
                    let distance = position - index as f64;
                    let sinc = if distance.abs() < 1e-9 {
                        1.0
                    } else {
                        (PI * distance).sin() / (PI * distance)
                    };
                    f64::from(sample)
                        * sinc
                        * (0.5 + 0.5 * (PI * distance / (RADIUS as f64 + 1.0)).cos())
                })
                .sum();
            sum as f32
        })
        .collect()
}

/// `samples` with `gain`, `offset` and noise of this deviation.
pub fn received(samples: &[f32], gain: f64, offset: f64, noise: f64, seed: u64) -> Vec<f32> {
    let mut source = Noise(seed | 1);
    samples
        .iter()
        .map(|sample| {
            (f64::from(*sample) * gain
                + offset
                + if noise > 0.0 { noise * source.gaussian() } else { 0.0 }) as f32
        })
        .collect()
}
