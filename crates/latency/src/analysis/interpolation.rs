//! Interpolation between the samples of a band-limited function.

use std::f64::consts::PI;

/// Samples on each side that the windowed sinc covers.
const RADIUS: isize = 24;
/// The search ends at this fraction of a sample.
const PRECISION: f64 = 1e-4;

/// The value of `samples` at `position`: a sinc under a Hann window; zero beyond the ends.
fn value(samples: &[f64], position: f64) -> f64 {
    let nearest = position.round() as isize;
    (nearest - RADIUS..=nearest + RADIUS)
        .filter_map(|index| {
            let sample = samples.get(usize::try_from(index).ok()?)?;
            let distance = position - index as f64;
            let window = 0.5 + 0.5 * (PI * distance / (RADIUS as f64 + 1.0)).cos();
            Some(sample * window * sinc(distance))
        })
        .sum()
}

fn sinc(x: f64) -> f64 {
    if x.abs() < 1e-9 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// Where the magnitude of the band-limited function through `samples` is largest near `index`, in
/// samples, and its signed value there.
pub fn peak(samples: &[f64], index: usize) -> (f64, f64) {
    let sign = samples.get(index).map_or(1.0, |sample| sample.signum());
    let at = |position: f64| sign * value(samples, position);
    let golden = (5_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (index as f64 - 0.75, index as f64 + 0.75);
    while high - low > PRECISION {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if at(left) < at(right) {
            low = left;
        } else {
            high = right;
        }
    }
    let position = (low + high) / 2.0;
    (position, sign * at(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_an_impulse_is_found_between_samples() {
        for tenth in -5..=5 {
            let shift = f64::from(tenth) / 10.0;
            for sign in [1.0, -1.0] {
                let samples: Vec<f64> =
                    (0..100).map(|index| sign * sinc(f64::from(index) - 50.0 - shift)).collect();
                let nearest = (49..=51)
                    .max_by(|a, b| samples[*a].abs().total_cmp(&samples[*b].abs()))
                    .unwrap();
                let (position, value) = peak(&samples, nearest);
                assert!((position - 50.0 - shift).abs() < 0.02, "{shift}: {position}");
                assert!((value - sign).abs() < 0.03, "{shift}: {value}");
            }
        }
    }

    #[test]
    fn a_single_sample_is_its_own_peak() {
        let mut samples = vec![0.0; 9];
        samples[4] = -2.0;
        let (position, value) = peak(&samples, 4);
        assert!((position - 4.0).abs() < 1e-3 && (value + 2.0).abs() < 1e-3);
    }
}
