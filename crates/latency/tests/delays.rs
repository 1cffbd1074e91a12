//! Delays that a test inserts, and the analysis must find.

mod support;

use consort_latency::{Analysis, Continuity, LatencyError, Method, Recording, Signal, analyse};
use proptest::prelude::*;
use support::{delayed, direct, received, resampled};

const ALL: [Signal; 4] = [Signal::Impulses, Signal::Sequence, Signal::Sweeps, Signal::Marked];
const RATES_HZ: [u32; 4] = [44_100, 48_000, 96_000, 192_000];

fn measured(left: &[f32], right: &[f32], rate_hz: u32) -> Result<Analysis, LatencyError> {
    analyse(&Recording::new(&[left, right], rate_hz)?)
}

/// Asserts that every delay is exactly `delay`.
fn assert_exactly(found: &Analysis, delay: usize) {
    let figures = found.distribution;
    assert_eq!([figures.minimum, figures.median, figures.p99, figures.maximum], [delay as f64; 4]);
    assert!(
        found.copied && found.drift.is_none() && found.is_unbroken(),
        "{:?} {:?}",
        found.continuity,
        found.lost
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_digital_delay_is_found_exactly_at_any_gain_or_polarity(
        signal in prop::sample::select(&ALL[..]),
        rate_hz in prop::sample::select(&RATES_HZ[..]),
        delay_s in prop_oneof![Just(0.0), Just(10.0), 0.0..0.01_f64, 0.01..0.5_f64, 0.5..10.0_f64],
        gain_db in -60.0..0.0_f64,
        inverted: bool,
        offset in -0.2..0.2_f64,
    ) {
        let (second, delay) = (rate_hz as usize, (delay_s * f64::from(rate_hz)) as usize);
        let left = direct(signal, 500, second, delay + 5_000, rate_hz);
        let gain = 10_f64.powf(gain_db / 20.0) * if inverted { -1.0 } else { 1.0 };
        let right = received(&delayed(&left, delay), gain, offset, 0.0, 1);
        let found = measured(&left, &right, rate_hz).unwrap();
        assert_exactly(&found, delay);
        let (found_db, found_inverted) = found.gain();
        prop_assert!((found_db - gain_db).abs() < 0.1 && found_inverted == inverted, "{found_db} dB");
    }

    #[test]
    fn a_delay_between_samples_is_found_to_a_twentieth_of_one(
        signal in prop::sample::select(&ALL[..]),
        delay in 30.0..3_000.0_f64,
        gain in prop::sample::select(&[1.0, -0.3][..]),
    ) {
        let left = direct(signal, 500, 60_000, 5_000, 48_000);
        let right = received(&resampled(&left, delay, 0.0), gain, 0.0, 1e-5, 7);
        let found = measured(&left, &right, 48_000).unwrap();
        prop_assert!((found.frames() - delay).abs() < 0.05, "{} for {delay}", found.frames());
        prop_assert!(found.steps.is_empty() && found.drift.is_none(), "{:?} {:?}", found.steps, found.drift);
    }

    #[test]
    fn in_noise_20_db_above_the_sound_no_delay_is_off_by_over_a_sample(
        signal in prop::sample::select(&ALL[..]),
        delay in 0..48_000_usize,
        seed: u64,
    ) {
        let left = direct(signal, 500, 200_000, 50_000, 48_000);
        let level = match signal { Signal::Marked => 0.05, _ => 0.5 };
        let right = received(&delayed(&left, delay), 0.05, 0.0, 0.05 * level * 10.0, seed);
        match measured(&left, &right, 48_000) {
            Ok(found) => prop_assert!((found.frames() - delay as f64).abs() <= 1.0, "{signal:?} {}", found.frames()),
            Err(error) => {
                prop_assert!(matches!(error, LatencyError::NotFound { .. } | LatencyError::Ambiguous { .. }), "{error}");
                prop_assert!(signal != Signal::Sequence, "a sequence must be found: {error}");
            }
        }
    }

    #[test]
    fn drift_is_reported_separately_from_the_delay(
        signal in prop::sample::select(&ALL[..]),
        rate_hz in prop::sample::select(&RATES_HZ[..]),
        delay in 200.0..10_000.0_f64,
        ppm in prop_oneof![Just(-100.0), Just(100.0), -150.0..-40.0_f64, 40.0..150.0_f64],
    ) {
        let left = direct(signal, 500, 4 * rate_hz as usize, 12_000, rate_hz);
        let right = resampled(&left, delay, ppm);
        let found = measured(&left, &right, rate_hz).unwrap();
        let drift = found.drift.expect("it drifts");
        // Frame n of the right channel is frame (n - delay)(1 - ppm) of the left one.
        let at = drift.at_frame as f64;
        let expected = at / (1.0 - ppm * 1e-6) + delay - at;
        prop_assert!((drift.frames - expected).abs() < 1.0, "{} for {expected}", drift.frames);
        prop_assert!((drift.ppm - ppm).abs() < 5.0, "{} for {ppm}", drift.ppm);
        prop_assert!(found.steps.is_empty(), "{:?}", found.steps);
    }

    #[test]
    fn one_inserted_frame_is_noticed_with_every_signal(
        signal in prop::sample::select(&ALL[..]),
        rate_hz in prop::sample::select(&RATES_HZ[..]),
        delay in 0..5_000_usize,
        part in 0.2..0.8_f64,
        copy_of_its_neighbour: bool,
    ) {
        let frames = 2 * rate_hz as usize;
        let left = direct(signal, 500, frames, 10_000, rate_hz);
        let mut right = delayed(&left, delay);
        let at = 500 + delay + (part * frames as f64) as usize;
        let inserted = if copy_of_its_neighbour { right[at - 1] } else { 0.0 };
        right.insert(at, inserted);
        right.truncate(left.len());
        let found = measured(&left, &right, rate_hz).unwrap();
        let figures = found.distribution;
        prop_assert!(!found.is_unbroken(), "{found:?}");
        prop_assert!(figures.minimum >= delay as f64 - 0.5 && figures.maximum <= delay as f64 + 1.5, "{figures:?}");
        prop_assert_eq!(found.drift, None);
    }

    #[test]
    fn through_a_low_pass_filter_the_delay_is_that_of_the_filter(
        signal in prop::sample::select(&[Signal::Impulses, Signal::Sequence, Signal::Marked][..]),
        delay in 0..5_000_usize,
        half_width in 1..12_usize,
    ) {
        // A symmetrical filter of 2n+1 taps (a triangle) delays everything by n.
        let taps: Vec<f32> = (0..=2 * half_width)
            .map(|tap| (half_width + 1 - tap.abs_diff(half_width)) as f32 / ((half_width + 1) * (half_width + 1)) as f32)
            .collect();
        let left = direct(signal, 500, 100_000, 10_000, 48_000);
        let late = delayed(&left, delay);
        let right: Vec<f32> = (0..late.len())
            .map(|frame| taps.iter().enumerate().filter_map(|(tap, gain)| Some(gain * late.get(frame.checked_sub(tap)?)?)).sum())
            .collect();
        let found = measured(&left, &right, 48_000).unwrap();
        let expected = (delay + half_width) as f64;
        prop_assert!((found.frames() - expected).abs() < 0.1, "{} for {expected}", found.frames());
    }
}

#[test]
fn delays_up_to_ten_seconds_are_found_at_every_rate() {
    for rate_hz in RATES_HZ {
        for seconds in [1, 10] {
            let delay = seconds * rate_hz as usize - 7;
            for signal in [Signal::Impulses, Signal::Marked] {
                let left = direct(signal, 100, rate_hz as usize, delay + 1000, rate_hz);
                assert_exactly(&measured(&left, &delayed(&left, delay), rate_hz).unwrap(), delay);
            }
        }
    }
}

#[test]
fn one_impulse_or_a_steady_train_is_enough() {
    let mut left = vec![0.0; 48_000];
    left[10_000] = 0.7;
    let found = measured(&left, &delayed(&left, 119), 48_000).unwrap();
    assert_exactly(&found, 119);
    assert_eq!(
        (found.method, found.distribution.count, found.continuity),
        (Method::Onsets, 1, Continuity::Sparse)
    );
    for frame in (12_000..40_000).step_by(2_000) {
        left[frame] = 0.7;
    }
    for delay in [119, 2_000, 5_119] {
        assert_exactly(&measured(&left, &delayed(&left, delay), 48_000).unwrap(), delay);
    }
}

#[test]
fn sixteen_bits_are_enough() {
    let left = direct(Signal::Marked, 100, 48_000, 2_000, 48_000);
    let right: Vec<f32> = delayed(&left, 1_027)
        .iter()
        .map(|sample| (sample * -0.5 * 32_768.0).round() / 32_768.0)
        .collect();
    assert_exactly(&measured(&left, &right, 48_000).unwrap(), 1_027);
}
