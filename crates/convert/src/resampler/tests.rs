use std::f64::consts::TAU;

use proptest::prelude::*;

use super::{Resampler, resampler};
use crate::{ConvertError, Filter, MAX_RATE_HZ};

const FILTERS: [Filter; 4] = [Filter::Prompt, Filter::Short, Filter::Medium, Filter::Long];

/// Rates that files and devices have, and three that have next to nothing in common with others.
const RATES: [u32; 13] = [
    8_000, 11_025, 11_127, 16_000, 22_050, 32_000, 44_100, 44_101, 48_000, 88_200, 96_000, 95_999,
    192_000,
];

/// Returns frames that no filter leaves as they are, from a position on.
fn noise(position: u64, frames: usize) -> Vec<f32> {
    let sample = |at: u64| {
        let bits = at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) >> 40;
        bits as f32 / 8_388_608.0 - 1.0
    };
    (position..).take(frames).map(sample).collect()
}

/// Pushes two channels, cut into pieces of the given lengths and the rest.
fn push(resampler: &mut Box<dyn Resampler>, input: &[f32], cuts: &[usize]) -> [Vec<f32>; 2] {
    let mut made = [Vec::new(), Vec::new()];
    let inverted: Vec<f32> = input.iter().map(|sample| -sample).collect();
    let mut first = 0_usize;
    for length in cuts.iter().chain([&usize::MAX]) {
        let end = input.len().min(first.saturating_add(*length));
        resampler.push(&[&input[first..end], &inverted[first..end]], &mut |planes| {
            made[0].extend_from_slice(planes[0]);
            made[1].extend_from_slice(planes[1]);
        });
        first = end;
    }
    made
}

fn flush(resampler: &mut Box<dyn Resampler>) -> Vec<f32> {
    let mut made = Vec::new();
    resampler.flush(&mut |planes| made.extend_from_slice(planes[0]));
    made
}

/// Returns all of the output for an input.
fn resampled(from_hz: u32, to_hz: u32, filter: Filter, input: &[f32]) -> Vec<f32> {
    let mut resampler = resampler(2, from_hz, to_hz, filter).unwrap();
    let [mut output, _] = push(&mut resampler, input, &[]);
    output.extend(flush(&mut resampler));
    output
}

fn different_rates() -> impl Strategy<Value = (u32, u32)> {
    let rate = prop::sample::select(&RATES[..]);
    (rate.clone(), rate).prop_filter("different", |(from, to)| from != to)
}

fn filter() -> impl Strategy<Value = Filter> {
    prop::sample::select(&FILTERS[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_output_does_not_depend_on_how_the_input_is_cut(
        (from_hz, to_hz) in different_rates(),
        filter in filter(),
        frames in 0_usize..20_000,
        cuts in prop::collection::vec(0_usize..5_000, 0..40),
    ) {
        let input = noise(0, frames);
        let mut resampler = resampler(2, from_hz, to_hz, filter).unwrap();
        let [whole, inverted] = push(&mut resampler, &input, &[]);
        let rest = flush(&mut resampler);
        let [cut, _] = push(&mut resampler, &input, &cuts);
        prop_assert!(cut == whole);
        prop_assert!(flush(&mut resampler) == rest);
        let is_inverted = |(a, b): (&f32, &f32)| *a == -b;
        prop_assert!(whole.iter().zip(&inverted).all(is_inverted));
    }

    #[test]
    fn a_restart_at_any_position_gives_the_same_bits(
        (from_hz, to_hz) in different_rates(),
        filter in filter(),
        frames in 0_usize..40_000,
        part in 0.0..1.0,
        before in 0_usize..5_000,
    ) {
        let input = noise(0, frames);
        let mut resampler = resampler(2, from_hz, to_hz, filter).unwrap();
        let [whole, _] = push(&mut resampler, &input, &[]);
        let position = (whole.len() as f64 * part) as usize;
        // What was pushed before leaves nothing behind.
        resampler.start_at(0);
        push(&mut resampler, &noise(1 << 40, before), &[]);
        let from = resampler.start_at(position as u64) as usize;
        prop_assert!(from <= frames);
        let [again, _] = push(&mut resampler, &input[from..], &[777]);
        prop_assert!(again == whole[position..]);
    }

    #[test]
    fn the_tail_is_what_silence_after_it_brings(
        (from_hz, to_hz) in different_rates(),
        filter in filter(),
        frames in 1_usize..20_000,
    ) {
        let mut input = noise(0, frames);
        let output = resampled(from_hz, to_hz, filter, &input);
        let exact = frames as u64 * u64::from(to_hz);
        prop_assert_eq!(output.len() as u64, exact.div_ceil(u64::from(from_hz)));
        input.resize(frames + 200_000, 0.0);
        let mut resampler = resampler(2, from_hz, to_hz, filter).unwrap();
        let [longer, _] = push(&mut resampler, &input, &[]);
        prop_assert!(output == longer[..output.len()]);
    }
}

#[test]
fn nothing_comes_of_nothing() {
    let mut resampler = resampler(2, 44_100, 48_000, Filter::Medium).unwrap();
    assert_eq!(flush(&mut resampler), []);
    // From a position that the input does not reach.
    resampler.start_at(100_000);
    push(&mut resampler, &noise(0, 10), &[]);
    assert_eq!(flush(&mut resampler), []);
}

/// A tone at the output, measured from its end at half of the frames on.
struct Tone {
    gain: f64,
    /// By how many output frames it is late.
    delay_frames: f64,
    /// Everything else, relative to the tone at the input.
    rest_db: f64,
}

/// Resamples a tone, and fits one of the same frequency to the output by least squares.
fn tone(from_hz: u32, to_hz: u32, filter: Filter, tone_hz: f64, frames: usize) -> Tone {
    let level = 0.5;
    let angle =
        |frame: usize, rate_hz: u32| TAU * (tone_hz * frame as f64 / f64::from(rate_hz) % 1.0);
    let input: Vec<f32> =
        (0..frames).map(|frame| (level * angle(frame, from_hz).sin()) as f32).collect();
    let output = resampled(from_hz, to_hz, filter, &input);
    // Away from the ends, where the tone is switched on and off.
    let settled = output.len() / 4..output.len() * 3 / 4;
    let (mut sine, mut cosine, mut count) = (0.0, 0.0, 0.0);
    // The window makes products with other frequencies vanish, so the two sums are independent.
    let window = |at: usize| {
        let place = (at - settled.start) as f64 / settled.len() as f64;
        (0.5 - 0.5 * (TAU * place).cos()).powi(2)
    };
    for at in settled.clone() {
        let sample = f64::from(output[at]) * window(at);
        sine += sample * angle(at, to_hz).sin();
        cosine += sample * angle(at, to_hz).cos();
        count += window(at) / 2.0;
    }
    let (sine, cosine) = (sine / count, cosine / count);
    let rest: f64 = settled
        .clone()
        .map(|at| {
            let fit = sine * angle(at, to_hz).sin() + cosine * angle(at, to_hz).cos();
            (f64::from(output[at]) - fit).powi(2)
        })
        .sum();
    let power = f64::powi(level, 2) / 2.0 * settled.len() as f64;
    Tone {
        gain: sine.hypot(cosine) / level,
        delay_frames: -cosine.atan2(sine) / TAU * f64::from(to_hz) / tone_hz,
        rest_db: 10.0 * (rest / power).log10(),
    }
}

fn decibels(gain: f64) -> f64 {
    20.0 * gain.log10()
}

/// What a tone may lose, in dB: everything else, and its own level.
const BLOCKS_DB: (f64, f64) = (-130.0, 0.001);
const POINTS_DB: (f64, f64) = (-115.0, 0.001);

#[test]
fn a_tone_stays_pure_and_where_it_is() {
    for filter in FILTERS {
        for (from_hz, to_hz, (rest_db, gain_db)) in [
            (44_100, 48_000, BLOCKS_DB),
            (48_000, 44_100, BLOCKS_DB),
            (32_000, 44_100, BLOCKS_DB),
            (96_000, 48_000, BLOCKS_DB),
            (8_000, 48_000, BLOCKS_DB),
            (3_000, 750_000, BLOCKS_DB),
            (44_101, 48_000, POINTS_DB),
            (48_000, 44_101, POINTS_DB),
            (95_999, 44_100, POINTS_DB),
        ] {
            for tone_hz in [1_000.0, 15_000.0] {
                if tone_hz > f64::from(from_hz.min(to_hz)) * 0.45 {
                    continue;
                }
                let rest_db = if filter == Filter::Prompt { POINTS_DB.0 } else { rest_db };
                // A hundred thousand frames, on the side that has more.
                let frames =
                    (100_000 * u64::from(from_hz) / u64::from(from_hz.max(to_hz))).max(4_000);
                let tone = tone(from_hz, to_hz, filter, tone_hz, frames as usize);
                let title = format!("{filter:?} {from_hz} -> {to_hz} Hz, {tone_hz} Hz");
                println!(
                    "{title}: THD+N {:.1} dB, gain {:+.5} dB, delay {:+.6} frames",
                    tone.rest_db,
                    decibels(tone.gain),
                    tone.delay_frames
                );
                assert!(tone.rest_db < rest_db, "{title}: THD+N {} dB", tone.rest_db);
                assert!(decibels(tone.gain).abs() < gain_db, "{title}: gain {}", tone.gain);
                assert!(tone.delay_frames.abs() < 1e-4, "{title}: late {}", tone.delay_frames);
            }
        }
    }
}

#[test]
fn treble_is_kept_and_what_the_lower_rate_lacks_is_removed() {
    for (filter, with_blocks_hz, with_points_hz) in [
        (Filter::Prompt, 19_000.0, 19_000.0),
        (Filter::Short, 20_000.0, 20_000.0),
        (Filter::Medium, 21_000.0, 20_500.0),
        (Filter::Long, 21_750.0, 21_250.0),
    ] {
        for (rate_hz, kept_hz) in [(44_100, with_blocks_hz), (44_101, with_points_hz)] {
            for (from_hz, to_hz) in [(rate_hz, 48_000), (48_000, rate_hz)] {
                let gain = decibels(tone(from_hz, to_hz, filter, kept_hz, 60_000).gain);
                println!("{filter:?} {from_hz} -> {to_hz} Hz: {gain:+.5} dB at {kept_hz} Hz");
                assert!(gain.abs() < 0.005, "{filter:?} {from_hz} -> {to_hz}: {gain} dB");
            }
            for hz in [22_051.0, 22_060.0, 22_500.0, 23_000.0, 23_900.0] {
                let left = tone(48_000, rate_hz, filter, hz, 60_000).rest_db;
                println!("{filter:?} 48000 -> {rate_hz} Hz: {left:.1} dB of {hz} Hz are left");
                assert!(left < -115.0, "{filter:?} {rate_hz}: {left} dB of {hz} Hz");
            }
        }
    }
}

#[test]
fn an_hour_has_as_many_frames_as_the_ratio_says() {
    let (from_hz, to_hz) = (44_100, 48_000);
    let mut resampler = resampler(1, from_hz, to_hz, Filter::Medium).unwrap();
    let (mut made, mut last) = (0, Vec::new());
    let mut keep = |planes: &[&[f32]]| {
        made += planes[0].len();
        last.clear();
        last.extend_from_slice(planes[0]);
    };
    let second = from_hz as usize;
    for number in 0..3600 {
        resampler.push(&[&noise(number * u64::from(from_hz), second)], &mut keep);
    }
    // One frame more than an hour.
    resampler.push(&[&noise(3600 * u64::from(from_hz), 1)], &mut keep);
    resampler.flush(&mut keep);
    let frames = 3600 * to_hz as usize + 2;
    assert_eq!(made, frames);
    // The last frames are where a converter that starts there has them.
    let position = frames - last.len();
    let from = resampler.start_at(position as u64);
    let rest = 3600 * u64::from(from_hz) + 1 - from;
    let mut again = Vec::new();
    let mut keep = |planes: &[&[f32]]| again.extend_from_slice(planes[0]);
    resampler.push(&[&noise(from, rest as usize)], &mut keep);
    resampler.flush(&mut keep);
    assert!(!last.is_empty() && again == last);
}

#[test]
fn rates_that_cannot_be_converted_are_refused() {
    let refused = |from_hz, to_hz| resampler(2, from_hz, to_hz, Filter::Short).err();
    assert_eq!(refused(0, 48_000), Some(ConvertError::Rate(0)));
    assert_eq!(refused(44_100, MAX_RATE_HZ + 1), Some(ConvertError::Rate(MAX_RATE_HZ + 1)));
    for (from_hz, to_hz) in
        [(1, 48_000), (48_000, 1), (100, 48_000), (187, 48_000), (767_999, 2_999)]
    {
        assert_eq!(refused(from_hz, to_hz), Some(ConvertError::Ratio(from_hz, to_hz)));
    }
    assert_eq!(refused(188, 48_000), None);
    for from_hz in RATES.into_iter().chain([37_800, 44_056, 47_952, 384_000, MAX_RATE_HZ]) {
        for to_hz in [44_100, 48_000, 96_000, 192_000] {
            assert_eq!(refused(from_hz, to_hz), None, "{from_hz} -> {to_hz}");
        }
    }
}
