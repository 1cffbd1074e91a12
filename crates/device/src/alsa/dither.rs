//! Adds noise before samples are rounded to 16 bits, so that the rounding error is noise and not
//! distortion.
//!
//! Source: S. Lipshitz, R. Wannamaker, J. Vanderkooy, "Quantization and Dither: A Theoretical
//! Survey", JAES 1992; the shaping filter is the five-tap one of Lipshitz, Vanderkooy, Wannamaker,
//! "Minimally Audible Noise Shaping", JAES 1991.

use proto::driver::Dither;

/// One step of 16 bits.
const STEP: f32 = 1.0 / 32_768.0;
/// Weights of the last errors, latest first.
const SHAPE: [f32; 5] = [2.033, -2.165, 1.959, -1.590, 0.6149];

/// A noise generator, with the last errors of each channel for noise shaping.
#[derive(Debug)]
pub(super) struct Ditherer {
    kind: Dither,
    state: u32,
    errors: Vec<[f32; SHAPE.len()]>,
}

impl Ditherer {
    pub(super) fn new(kind: Dither, channels: u32) -> Self {
        Self { kind, state: 0x9e37_79b9, errors: vec![[0.0; SHAPE.len()]; channels as usize] }
    }

    /// Adds noise to one channel's samples. Thread: cycle.
    pub(super) fn apply(&mut self, channel: u32, samples: &mut [f32]) {
        match self.kind {
            Dither::None => {}
            Dither::Rectangular => {
                samples.iter_mut().for_each(|sample| *sample += self.uniform() * STEP)
            }
            Dither::Triangular => {
                samples.iter_mut().for_each(|sample| *sample += self.triangular() * STEP)
            }
            Dither::Shaped => self.shape(channel, samples),
        }
    }

    fn shape(&mut self, channel: u32, samples: &mut [f32]) {
        let Some(mut errors) = self.errors.get(channel as usize).copied() else { return };
        for sample in samples {
            let shaped = *sample
                - errors.iter().zip(SHAPE).map(|(error, weight)| error * weight).sum::<f32>();
            let noise = self.triangular() * STEP;
            let rounded = ((shaped + noise) / STEP).round_ties_even() * STEP;
            // The error of a clipped sample is not a rounding error.
            let error = (rounded - shaped).clamp(-2.0 * STEP, 2.0 * STEP);
            errors.rotate_right(1);
            errors[0] = error;
            *sample = rounded;
        }
        if let Some(kept) = self.errors.get_mut(channel as usize) {
            *kept = errors;
        }
    }

    fn triangular(&mut self) -> f32 {
        self.uniform() + self.uniform()
    }

    /// Returns a number from -0.5 to 0.5: xorshift (G. Marsaglia, "Xorshift RNGs", 2003).
    fn uniform(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        (self.state >> 8) as f32 / 16_777_216.0 - 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded_mean(kind: Dither, level: f32) -> f32 {
        let mut ditherer = Ditherer::new(kind, 1);
        let mut samples = vec![level; 200_000];
        ditherer.apply(0, &mut samples);
        samples.iter().map(|sample| (sample / STEP).round_ties_even()).sum::<f32>()
            / samples.len() as f32
    }

    #[test]
    fn dither_preserves_levels_between_two_steps() {
        for kind in [Dither::Rectangular, Dither::Triangular, Dither::Shaped] {
            let mean = rounded_mean(kind, 0.3 * STEP);
            assert!((mean - 0.3).abs() < 0.02, "{kind:?}: {mean}");
        }
        assert_eq!(rounded_mean(Dither::None, 0.3 * STEP), 0.0);
    }

    #[test]
    fn dither_moves_a_sample_by_a_few_steps_at_most() {
        for (kind, most) in
            [(Dither::Rectangular, 0.51), (Dither::Triangular, 1.01), (Dither::Shaped, 20.0)]
        {
            let mut ditherer = Ditherer::new(kind, 2);
            let mut samples = vec![0.25; 50_000];
            ditherer.apply(1, &mut samples);
            let worst =
                samples.iter().map(|sample| (sample - 0.25).abs() / STEP).fold(0.0, f32::max);
            assert!(worst <= most, "{kind:?}: {worst}");
        }
    }
}
