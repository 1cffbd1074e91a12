use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::{comparable, sample, samples};
use crate::kernels::samples as baseline;
use crate::{PeerSamples, add, copy, gain, limited_gain, mix, peak, scrub, silence};

/// An in-place operation, as chosen for this processor or in the baseline version.
type Version<'a> = &'a dyn Fn(&mut [f32]);

/// Runs both versions of an operation on copies of `into` and requires `expected` of each.
fn check(
    into: &[f32],
    offset: usize,
    expected: &[f32],
    versions: [Version<'_>; 2],
) -> Result<(), TestCaseError> {
    for version in versions {
        let mut result = into.to_vec();
        version(&mut result[offset..]);
        prop_assert_eq!(comparable(&result[offset..]), comparable(expected));
        prop_assert_eq!(comparable(&result[..offset]), comparable(&into[..offset]));
    }
    Ok(())
}

fn sum_in_order(sources: &[&[f32]], frame: usize) -> f32 {
    let mut present = sources.iter().enumerate();
    let mut sum = match present.next() {
        Some((_, first)) => first.get(frame).copied().unwrap_or(0.0),
        None => 0.0,
    };
    for (_, source) in present {
        if let Some(sample) = source.get(frame) {
            sum += sample;
        }
    }
    sum
}

proptest! {
    #[test]
    fn a_copy_is_the_source_and_then_silence((source, from) in samples(), (into, to) in samples()) {
        let source = &source[from..];
        let expected: Vec<f32> =
            (0..into.len() - to).map(|frame| source.get(frame).copied().unwrap_or(0.0)).collect();
        let peer = PeerSamples::from_slice(source);
        check(&into, to, &expected, [&|into| copy(peer, into), &|into| baseline::copy(peer, into)])?;
    }

    #[test]
    fn adding_changes_only_the_frames_that_the_source_has((source, from) in samples(), (into, to) in samples()) {
        let source = &source[from..];
        let mut expected = into[to..].to_vec();
        for (sum, sample) in expected.iter_mut().zip(source) {
            *sum += sample;
        }
        let peer = PeerSamples::from_slice(source);
        check(&into, to, &expected, [&|into| add(peer, into), &|into| baseline::add(peer, into)])?;
    }

    #[test]
    fn a_mix_is_the_sum_in_source_order(
        sources in prop::collection::vec(samples(), 0..6),
        (into, to) in samples(),
    ) {
        let sources: Vec<&[f32]> = sources.iter().map(|(samples, from)| &samples[*from..]).collect();
        let expected: Vec<f32> = (0..into.len() - to).map(|frame| sum_in_order(&sources, frame)).collect();
        let peers: Vec<_> = sources.iter().map(|source| PeerSamples::from_slice(source)).collect();
        check(&into, to, &expected, [&|into| mix(&peers, into), &|into| baseline::mix(&peers, into)])?;
    }

    #[test]
    fn gain_multiplies_every_sample((into, to) in samples(), factor in sample()) {
        let expected: Vec<f32> = into[to..].iter().map(|x| x * factor).collect();
        check(&into, to, &expected, [&|into| gain(into, factor), &|into| baseline::gain(into, factor)])?;
    }

    #[test]
    fn scrubbing_replaces_exactly_what_is_not_finite((into, to) in samples()) {
        let expected: Vec<f32> = into[to..].iter().map(|x| if x.is_finite() { *x } else { 0.0 }).collect();
        check(&into, to, &expected, [&scrub, &|into| baseline::scrub(into)])?;
    }

    #[test]
    fn a_limited_gain_scales_what_is_finite_within_a_limit(
        (into, to) in samples(),
        most in 0.5_f32..100.0,
        factor in 0.0_f32..10.0,
    ) {
        let limited = |x: &f32| if x.is_finite() { x.clamp(-most, most) * factor } else { 0.0 };
        let expected: Vec<f32> = into[to..].iter().map(limited).collect();
        check(&into, to, &expected, [
            &|into| limited_gain(into, most, factor),
            &|into| baseline::limited_gain(into, most, factor),
        ])?;
    }

    #[test]
    fn silence_is_all_zeros((into, to) in samples()) {
        check(&into, to, &vec![0.0; into.len() - to], [&silence, &|into| baseline::silence(into)])?;
    }

    #[test]
    fn the_peak_is_the_largest_magnitude_and_nan_shows((samples, from) in samples()) {
        let samples = &samples[from..];
        let expected = if samples.iter().any(|x| x.is_nan()) {
            f32::NAN
        } else {
            samples.iter().fold(0.0_f32, |peak, x| peak.max(x.abs()))
        };
        prop_assert_eq!(comparable(&[peak(samples), baseline::peak(samples)]), comparable(&[expected; 2]));
    }
}

#[test]
fn a_mix_longer_than_a_cache_block_is_the_sum_in_source_order() {
    let ramp =
        |scale: f32, frames: usize| -> Vec<f32> { (0..frames).map(|x| x as f32 * scale).collect() };
    let sources = [ramp(0.1, 5000), ramp(1e-3, 1500), ramp(-0.7, 1024), ramp(1e6, 4999)];
    let sources: Vec<&[f32]> = sources.iter().map(Vec::as_slice).collect();
    let peers: Vec<_> = sources.iter().map(|source| PeerSamples::from_slice(source)).collect();
    let mut into = vec![f32::NAN; 5003];
    mix(&peers, &mut into);
    let expected: Vec<f32> = (0..into.len()).map(|frame| sum_in_order(&sources, frame)).collect();
    assert_eq!(comparable(&into), comparable(&expected));
}

#[test]
fn parts_of_peer_samples_stay_within_the_whole() {
    let samples = [0.0, 1.0, 2.0, 3.0, 4.0];
    let whole = PeerSamples::from_slice(&samples);
    for (case, part, expected) in [
        ("shorter", whole.truncated(2), &samples[..2]),
        ("not longer", whole.truncated(9), &samples[..]),
        ("later", whole.skipped(3), &samples[3..]),
        ("past the end", whole.skipped(9), &[]),
        ("both", whole.skipped(1).truncated(2), &samples[1..3]),
    ] {
        let mut into = vec![-1.0; part.len()];
        copy(part, &mut into);
        assert_eq!(into, expected, "{case}");
        assert_eq!(part.is_empty(), expected.is_empty(), "{case}");
    }
}
