//! Tests every operation, in the baseline version and in the one chosen for this processor, against
//! its definition for one sample at a time.

mod conversion;
mod samples;

use std::vec::Vec;

use proptest::prelude::*;

/// Any 32 bits, with difficult values often: zeros, denormals, infinities, NaN, full scale.
fn sample() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -1.5_f32..1.5,
        1 => any::<u32>().prop_map(f32::from_bits),
        1 => prop::sample::select(&[
            0.0, -0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN,
            f32::MIN_POSITIVE, 1e-40, -1e-45, 0.5, 1.5 / 32768.0, 2.5 / 32768.0, -0.5 / 32768.0,
        ][..]),
    ]
}

/// Up to 200 samples, and an offset into their allocation that breaks the alignment.
fn samples() -> impl Strategy<Value = (Vec<f32>, usize)> {
    (0_usize..9).prop_flat_map(|offset| {
        (prop::collection::vec(sample(), offset..offset + 200), Just(offset))
    })
}

/// Returns bits that are equal exactly if the samples are. All NaNs are equal, since Rust leaves
/// their bits open.
fn comparable(samples: &[f32]) -> Vec<u32> {
    samples.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
}
