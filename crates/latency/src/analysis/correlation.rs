//! Finds one sound in another: cross-correlation by Fourier transform, whitened by the spectrum of
//! the sound.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use super::interpolation;

/// Correlation of a reference with the received sound, for every lag between them.
pub struct Correlation {
    values: Vec<f64>,
    /// Index of lag 0.
    zero: usize,
}

/// The best match of two sounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// How far the received sound lags behind the reference, in whole samples.
    pub lag: i64,
    /// The same, interpolated.
    pub exact_lag: f64,
    /// Height of the match above the rest, in standard deviations of the rest.
    pub clarity: f64,
    /// The second best match elsewhere, and its height as a fraction of the best one's.
    pub rival: (i64, f64),
    /// Whether the sound came back inverted.
    pub inverted: bool,
}

/// Lower limit of the divisor, as a fraction of the reference's mean power: at frequencies that the
/// reference lacks, noise must not be amplified.
const FLOOR: f64 = 0.1;

/// Correlates `received` with `reference`, each of at least one sample.
pub fn correlate(reference: &[f64], received: &[f64]) -> Correlation {
    let transforms = Transforms::of_length((reference.len() + received.len()).next_power_of_two());
    let (sent, mut product) = (transforms.spectrum(reference), transforms.spectrum(received));
    for ((bin, sent), weight) in product.iter_mut().zip(&sent).zip(weights(&sent)) {
        *bin *= sent.conj() / weight;
    }
    let circular = transforms.samples(product);
    let length = circular.len();
    let zero = reference.len() - 1;
    let mut values = circular[length - zero..].to_vec();
    values.extend(&circular[..received.len()]);
    Correlation { values, zero }
}

/// The point in `reference`, in samples from its beginning, whose delay [`correlate`] measures if
/// the delay changes within it. It is the centre of the parts that determine the peak, which are
/// the steep parts of the whitened sound: the middle of a sequence, or the high-frequency end of a
/// sweep.
pub fn deciding_point(reference: &[f64]) -> f64 {
    let transforms = Transforms::of_length(reference.len().next_power_of_two());
    let mut steepness = transforms.spectrum(reference);
    let weights: Vec<f64> = weights(&steepness).collect();
    for ((index, bin), weight) in steepness.iter_mut().enumerate().zip(weights) {
        *bin *= Complex::new(0.0, index as f64) / weight.sqrt();
    }
    let steepness = transforms.samples(steepness);
    let moments = steepness
        .iter()
        .take(reference.len())
        .enumerate()
        .fold((0.0, 0.0), |(sum, moment), (at, steep)| {
            (sum + steep * steep, moment + at as f64 * steep * steep)
        });
    if moments.0 > 0.0 { moments.1 / moments.0 } else { reference.len() as f64 / 2.0 }
}

/// The divisor of each bin, so that all bins count the same: its power, or the floor.
fn weights(spectrum: &[Complex<f64>]) -> impl Iterator<Item = f64> {
    let power = spectrum.iter().map(|bin| bin.norm_sqr()).sum::<f64>() / spectrum.len() as f64;
    spectrum.iter().map(move |bin| (bin.norm_sqr() + FLOOR * power).max(f64::MIN_POSITIVE))
}

/// Forward and inverse Fourier transforms of one length.
struct Transforms {
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

impl Transforms {
    fn of_length(length: usize) -> Self {
        let mut planner = RealFftPlanner::new();
        Self {
            forward: planner.plan_fft_forward(length),
            inverse: planner.plan_fft_inverse(length),
        }
    }

    /// The spectrum of at most that many samples, padded with zeros.
    fn spectrum(&self, samples: &[f64]) -> Vec<Complex<f64>> {
        let mut padded = self.forward.make_input_vec();
        padded[..samples.len()].copy_from_slice(samples);
        let mut spectrum = self.forward.make_output_vec();
        self.forward.process(&mut padded, &mut spectrum).expect("vectors of the plan's lengths");
        spectrum
    }

    fn samples(&self, mut spectrum: Vec<Complex<f64>>) -> Vec<f64> {
        // For a real signal these two have no imaginary part, but rounding may have left one.
        for end in [0, spectrum.len() - 1] {
            spectrum[end].im = 0.0;
        }
        let mut samples = self.inverse.make_output_vec();
        self.inverse.process(&mut spectrum, &mut samples).expect("vectors of the plan's lengths");
        samples
    }
}

impl Correlation {
    /// The highest peak among lags from `least` to `most`.
    pub fn best(&self, least: i64, most: i64) -> Option<Match> {
        let index = |lag: i64| usize::try_from(lag + self.zero as i64).ok();
        let from = index(least).unwrap_or(0);
        let to = index(most)?.min(self.values.len() - 1);
        let values = self.values.get(from..=to)?;
        let best = largest(values.iter().enumerate())?;
        let lobe = self.lobe(values, best);
        let outside = || values.iter().enumerate().filter(|(index, _)| !lobe.contains(index));
        let count = outside().count().max(1);
        let deviation =
            (outside().map(|(_, value)| value * value).sum::<f64>() / count as f64).sqrt();
        let height = values[best].abs();
        let lag = |index: usize| index as i64 + from as i64 - self.zero as i64;
        let rival = match largest(outside()) {
            Some(rival) => (lag(rival), values[rival].abs() / height),
            None => (lag(best), 0.0),
        };
        let (position, value) = interpolation::peak(values, best);
        Some(Match {
            lag: lag(best),
            exact_lag: position + (from as f64 - self.zero as f64),
            clarity: height / deviation.max(height * 1e-9).max(f64::MIN_POSITIVE),
            rival,
            inverted: value < 0.0,
        })
    }

    /// The range around a peak that stays above half its height, with its first side lobes.
    fn lobe(&self, values: &[f64], peak: usize) -> std::ops::RangeInclusive<usize> {
        let half = values[peak].abs() / 2.0;
        let widest = (values.len() / 50).max(16);
        let reach = |mut next: Box<dyn Iterator<Item = usize>>| {
            let mut last_high = peak;
            for _ in 0..widest {
                let Some(index) = next.next() else { break };
                if values[index].abs() >= half {
                    last_high = index;
                } else if index.abs_diff(last_high) > 4 {
                    break;
                }
            }
            3 * last_high.abs_diff(peak) + 4
        };
        let before = reach(Box::new((0..peak).rev()));
        let after = reach(Box::new(peak + 1..values.len()));
        peak.saturating_sub(before)..=(peak + after).min(values.len() - 1)
    }
}

/// The index of the largest magnitude.
fn largest<'a>(values: impl Iterator<Item = (usize, &'a f64)>) -> Option<usize> {
    values.max_by(|left, right| left.1.abs().total_cmp(&right.1.abs())).map(|(index, _)| index)
}
