//! Recordings that cannot be measured: the result is an error, never a number.

mod support;

use consort_latency::{LatencyError, Recording, Side, Signal, analyse};
use proptest::prelude::*;
use support::{Noise, delayed, direct};

const RATE_HZ: u32 = 48_000;

fn error(left: &[f32], right: &[f32]) -> LatencyError {
    match Recording::new(&[left, right], RATE_HZ) {
        Ok(recording) => analyse(&recording).map(|found| found.frames()).expect_err("a number"),
        Err(error) => error,
    }
}

fn sequence() -> Vec<f32> {
    direct(Signal::Sequence, 500, 30_000, 5_000, RATE_HZ)
}

#[test]
fn an_impossible_recording_is_refused_with_the_reason() {
    let sound = sequence();
    let channels = |count: usize| Recording::new(&vec![sound.clone(); count], RATE_HZ).unwrap_err();
    assert_eq!(channels(1), LatencyError::NotStereo { channels: 1 });
    assert_eq!(channels(6), LatencyError::NotStereo { channels: 6 });
    assert_eq!(channels(0), LatencyError::NotStereo { channels: 0 });
    assert_eq!(error(&sound, &sound[1..]), LatencyError::Lengths { left: 35_500, right: 35_499 });
    assert_eq!(
        error(&sound[..200], &sound[..200]),
        LatencyError::TooShort { frames: 200, needed: 256 }
    );
    assert_eq!(Recording::new(&[&sound, &sound], 0).unwrap_err(), LatencyError::NoRate);
}

#[test]
fn a_damaged_silent_or_clipped_channel_is_named() {
    let sound = sequence();
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut damaged = sound.clone();
        damaged[17_000] = value;
        assert_eq!(
            error(&sound, &damaged),
            LatencyError::NotFinite { side: Side::Right, frame: 17_000 }
        );
        assert_eq!(
            error(&damaged, &sound),
            LatencyError::NotFinite { side: Side::Left, frame: 17_000 }
        );
    }
    let silence = vec![0.0; sound.len()];
    assert_eq!(error(&sound, &silence), LatencyError::Silent { side: Side::Right });
    assert_eq!(error(&silence, &sound), LatencyError::Silent { side: Side::Left });
    assert_eq!(error(&sound, &vec![0.25; sound.len()]), LatencyError::Silent { side: Side::Right });
    let loud: Vec<f32> = sound.iter().map(|sample| (sample * 3.0).clamp(-1.0, 1.0)).collect();
    assert!(matches!(error(&sound, &loud), LatencyError::Clipped { side: Side::Right, .. }));
}

#[test]
fn one_sample_at_full_scale_does_not_count_as_clipped() {
    let mut left = vec![0.0; 10_000];
    left[3_000] = 1.0;
    let recording = Recording::new(&[left.clone(), delayed(&left, 77)], RATE_HZ).unwrap();
    assert_eq!(analyse(&recording).unwrap().frames(), 77.0);
}

#[test]
fn a_delay_longer_than_the_recording_is_not_found() {
    let left = direct(Signal::Sequence, 500, 40_000, 0, RATE_HZ);
    let mut right = delayed(&left, 40_400);
    assert!(matches!(
        error(&left, &right),
        LatencyError::NotFound { .. } | LatencyError::Silent { .. }
    ));
    // With a noise floor the channel is not even silent.
    let mut noise = Noise(3);
    right.iter_mut().for_each(|sample| *sample = noise.gaussian() as f32 * 1e-4);
    assert!(matches!(error(&left, &right), LatencyError::NotFound { .. }));
}

#[test]
fn swapped_channels_are_reported() {
    let left = sequence();
    assert_eq!(error(&delayed(&left, 480), &left), LatencyError::Swapped { frames: 480 });
}

#[test]
fn a_sound_that_repeats_itself_throughout_is_ambiguous() {
    let tone = |shift: usize| -> Vec<f32> {
        (0..96_000).map(|frame| ((frame + shift) as f32 * 0.13).sin() * 0.3).collect()
    };
    let found = error(&tone(100), &tone(0));
    assert!(
        matches!(found, LatencyError::NotFound { .. } | LatencyError::Ambiguous { .. }),
        "{found}"
    );
    let clicks = |shift: usize| -> Vec<f32> {
        (0..96_000)
            .map(|frame| if (frame + shift).is_multiple_of(1_000) { 0.5 } else { 0.0 })
            .collect()
    };
    let found = error(&clicks(100), &clicks(0));
    assert!(matches!(found, LatencyError::Ambiguous { .. }), "{found}");
}

#[test]
fn two_clicks_that_agree_only_roughly_are_not_a_measurement() {
    let clicks = |places: [usize; 2]| -> Vec<f32> {
        let mut samples = vec![0.0; 96_000];
        places.iter().for_each(|frame| samples[*frame] = 0.5);
        samples
    };
    let found = error(&clicks([10_000, 40_000]), &clicks([15_000, 45_012]));
    assert_eq!(found, LatencyError::Chance { agreeing: 2, clicks: 2 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn two_unrelated_noises_have_no_delay(seed in 1_u64.., other in 1_u64..) {
        prop_assume!(seed != other);
        let sound = |seed: u64| -> Vec<f32> {
            let mut noise = Noise(seed);
            (0..60_000).map(|_| (noise.gaussian() * 0.1) as f32).collect()
        };
        let found = error(&sound(seed), &sound(other));
        prop_assert!(matches!(
            found,
            LatencyError::NotFound { .. } | LatencyError::Ambiguous { .. } | LatencyError::Swapped { .. }
        ), "{found}");
    }

    #[test]
    fn a_few_unrelated_clicks_on_each_channel_have_no_delay(
        left in prop::collection::vec((1_000..94_000_usize, 0.1..0.9_f32), 2..9),
        right in prop::collection::vec((1_000..94_000_usize, 0.1..0.9_f32), 2..9),
    ) {
        let clicks = |places: &[(usize, f32)]| -> Vec<f32> {
            let mut samples = vec![0.0; 96_000];
            places.iter().for_each(|(frame, height)| samples[*frame] = *height);
            samples
        };
        let found = error(&clicks(&left), &clicks(&right));
        prop_assert!(matches!(
            found,
            LatencyError::NotFound { .. } | LatencyError::Ambiguous { .. } | LatencyError::Chance { .. } | LatencyError::Swapped { .. }
        ), "{found}");
    }

    #[test]
    fn random_samples_of_any_value_never_panic(
        left in prop::collection::vec(any::<f32>(), 0..600),
        right in prop::collection::vec(any::<f32>(), 0..600),
    ) {
        let _ = Recording::new(&[left, right], RATE_HZ).and_then(|recording| analyse(&recording));
    }

    #[test]
    fn random_samples_within_range_never_panic(
        pairs in prop::collection::vec((-1.0..1.0_f32, -1.0..1.0_f32), 256..2_000),
    ) {
        let (left, right): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let _ = Recording::new(&[left, right], RATE_HZ).and_then(|recording| analyse(&recording));
    }
}
