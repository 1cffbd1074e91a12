//! A room that is simulated: what the loudspeaker plays arrives at the microphone later and
//! quieter, by two ways.

use std::f64::consts::TAU;

use super::*;

const RATE_HZ: u32 = 32_000;
/// Nothing but the adaptive filter: what comes after it takes a steady tone for noise.
const PLAIN: Speex = Speex {
    filter_ms: 200,
    gain_control: false,
    denoise: false,
    suppress: false,
    suppress_db: None,
    suppress_active_db: None,
};

/// White noise of this peak.
fn noise(frames: usize, peak: f32) -> Vec<f32> {
    let mut state = 1_u64;
    let mut sample = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f32 / (1_u64 << 30) as f32 - 1.0) * peak
    };
    (0..frames).map(|_| sample()).collect()
}

fn tone(frames: usize, hz: f64, peak: f64) -> Vec<f32> {
    let at = |frame: usize| (peak * (TAU * hz * frame as f64 / f64::from(RATE_HZ)).sin()) as f32;
    (0..frames).map(at).collect()
}

/// What arrives of `far` after `delay` frames, and a second time later.
fn echo(far: &[f32], delay: usize) -> Vec<f32> {
    let heard = |frame: usize, later: usize| frame.checked_sub(later).map_or(0.0, |at| far[at]);
    (0..far.len()).map(|at| 0.3 * heard(at, delay) + 0.1 * heard(at, delay + 350)).collect()
}

fn sum(one: &[f32], other: &[f32]) -> Vec<f32> {
    one.iter().zip(other).map(|(one, other)| one + other).collect()
}

fn cancelled(canceller: &mut Canceller, near: &[f32], far: &[f32]) -> Vec<f32> {
    let block = canceller.block();
    let blocks = near.chunks_exact(block).zip(far.chunks_exact(block));
    blocks.flat_map(|(near, far)| canceller.cancel(&[near], &[far]).to_vec()).collect()
}

fn power_db(samples: &[f32]) -> f64 {
    let power = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>();
    10.0 * (power / samples.len() as f64).max(1e-12).log10()
}

/// The level of a tone of a whole number of periods, dB of its power.
fn tone_db(samples: &[f32], hz: f64) -> f64 {
    let turn = TAU * hz / f64::from(RATE_HZ);
    let part = |function: fn(f64) -> f64| {
        let samples = samples.iter().enumerate();
        samples.map(|(at, sample)| f64::from(*sample) * function(turn * at as f64)).sum::<f64>()
    };
    let peak = 2.0 * part(f64::sin).hypot(part(f64::cos)) / samples.len() as f64;
    10.0 * (peak * peak / 2.0).max(1e-12).log10()
}

#[test]
fn blocks_are_powers_of_two() {
    for (frames, expected) in [(0, 1), (1, 1), (640, 512), (1024, 1024), (1025, 1024)] {
        assert_eq!(power_of_two_within(frames), expected, "{frames}");
    }
    let canceller = Canceller::new(Method::Speex(PLAIN), 20, 1, RATE_HZ).expect("libspeexdsp");
    assert_eq!(canceller.block(), 512);
}

#[test]
fn an_echo_is_20_db_quieter_after_six_seconds_at_any_delay_within_the_filter() {
    for delay_ms in [0, 5, 40, 150] {
        let mut canceller =
            Canceller::new(Method::Speex(PLAIN), 20, 1, RATE_HZ).expect("libspeexdsp");
        let second = RATE_HZ as usize;
        let far = noise(8 * second, 0.5);
        let near = echo(&far, RATE_HZ as usize * delay_ms / 1000);
        let left = cancelled(&mut canceller, &near, &far);
        let (before, after) = (power_db(&near[6 * second..]), power_db(&left[6 * second..]));
        assert!(before > -25.0 && after < before - 20.0, "{delay_ms} ms: {before} to {after} dB");
    }
}

#[test]
fn what_is_near_is_as_loud_as_without_an_echo() {
    let mut canceller = Canceller::new(Method::Speex(PLAIN), 20, 1, RATE_HZ).expect("libspeexdsp");
    let second = RATE_HZ as usize;
    let far = noise(9 * second, 0.5);
    // It begins once the echo is known.
    let mut speech = tone(9 * second, 1_000.0, 0.1);
    speech[..6 * second].fill(0.0);
    let near = sum(&echo(&far, 1_280), &speech);
    let left = cancelled(&mut canceller, &near, &far);
    let part = 7 * second..8 * second;
    let (expected, found) =
        (tone_db(&speech[part.clone()], 1_000.0), tone_db(&left[part.clone()], 1_000.0));
    assert!((found - expected).abs() < 1.0, "{found} instead of {expected} dB");
    let negative: Vec<f32> = speech[part.clone()].iter().map(|sample| -sample).collect();
    let rest = sum(&left[part.clone()], &negative);
    let before = power_db(&echo(&far, 1_280)[part]);
    assert!(power_db(&rest) < before - 10.0, "{} of {before} dB is left", power_db(&rest));
}

#[test]
fn each_channel_keeps_its_level_while_nothing_is_played() {
    let mut canceller = Canceller::new(Method::Speex(PLAIN), 20, 2, RATE_HZ).expect("libspeexdsp");
    let near = [tone(16_384, 500.0, 0.5), tone(16_384, 1_000.0, 0.25)];
    let silence = [0.0; 512];
    let mut left = [Vec::new(), Vec::new()];
    for at in (0..16_384).step_by(512) {
        let blocks = [&near[0][at..at + 512], &near[1][at..at + 512]];
        let both = canceller.cancel(&blocks, &[&silence, &silence]).chunks_exact(512);
        left.iter_mut().zip(both).for_each(|(left, heard)| left.extend_from_slice(heard));
    }
    for (channel, hz, other_hz) in [(0, 500.0, 1_000.0), (1, 1_000.0, 500.0)] {
        let (heard, before) = (&left[channel][8_192..14_592], &near[channel][8_192..14_592]);
        let change = tone_db(heard, hz) - tone_db(before, hz);
        assert!(change.abs() < 0.5, "{channel}: {change} dB");
        assert!(tone_db(heard, other_hz) < -60.0, "{channel}");
    }
}

#[test]
fn without_a_method_everything_passes() {
    let mut canceller = Canceller::new(Method::Null, 20, 2, RATE_HZ).expect("no library");
    let near = [tone(512, 300.0, 0.5), tone(500, 500.0, 0.25)];
    let left = canceller.cancel(&[&near[0], &near[1]], &[&near[0], &near[0]]);
    assert_eq!(left[..512], near[0]);
    assert_eq!(left[512..1012], near[1]);
    assert_eq!(left[1012..], [0.0; 12], "what is missing is silence");
}

#[test]
fn what_is_for_one_channel_is_refused_for_two() {
    let speex = Speex { denoise: true, ..PLAIN };
    let refused = Canceller::new(Method::Speex(speex), 20, 2, RATE_HZ).expect_err("two channels");
    assert!(refused.to_string().contains("for one channel"), "{refused}");
    assert!(Canceller::new(Method::Speex(speex), 20, 1, RATE_HZ).is_ok());
}

#[test]
fn samples_beyond_full_scale_are_the_most_that_there_is() {
    let mut into = [0; 6];
    interleave(&[&[2.0, -2.0, f32::NAN], &[0.5, -0.5, 0.0]], 2, &mut into);
    assert_eq!(into, [i16::MAX, 16_384, i16::MIN, -16_384, 0, 0]);
}
