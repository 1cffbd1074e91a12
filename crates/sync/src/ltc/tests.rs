//! What is encoded is decoded, however the tape is played; and the transport follows it.

use proptest::prelude::*;

use super::decoder::{LtcDecoder, LtcFrame};
use super::encoder::LtcEncoder;
use super::follower::LtcFollower;
use super::frame::{BitWindow, Direction, FrameBits};
use crate::Wish;
use crate::time_code::{TimeCode, VideoRate};

const RATE_HZ: u32 = 48_000;
const QUANTUM: usize = 256;

/// The samples of `seconds` from the transport frame `from` on.
fn sound(rate: VideoRate, sample_rate_hz: u32, from: u32, seconds: f64) -> Vec<f32> {
    let mut encoder = LtcEncoder::new(rate, sample_rate_hz, 0.125);
    let mut samples = vec![0.0; (seconds * f64::from(sample_rate_hz)) as usize];
    for (cycle, samples) in samples.chunks_mut(QUANTUM).enumerate() {
        encoder.cycle(true, from + (cycle * QUANTUM) as u32, samples);
    }
    samples
}

/// What a tape machine at another speed plays.
fn at_speed(samples: &[f32], speed: f64) -> Vec<f32> {
    let last = samples.len() - 1;
    let count = (last as f64 / speed) as usize;
    let at = |frame: usize| {
        let place = frame as f64 * speed;
        let (whole, part) = (place as usize, place.fract() as f32);
        samples[whole] + (samples[(whole + 1).min(last)] - samples[whole]) * part
    };
    (0..count).map(at).collect()
}

/// The decoded frames, each with the sample at which it ended.
fn decoded(samples: &[f32], sample_rate_hz: u32) -> Vec<(FrameBits, Direction, usize)> {
    let (mut decoder, mut frames) = (LtcDecoder::new(sample_rate_hz), Vec::new());
    for (cycle, samples) in samples.chunks(QUANTUM).enumerate() {
        decoder.read(samples, |LtcFrame { bits, direction, end }| {
            frames.push((bits, direction, cycle * QUANTUM + end));
        });
    }
    frames
}

/// Checks that consecutive frames were decoded, and no others; returns how many.
fn count_in_order(frames: &[(FrameBits, Direction, usize)], rate: VideoRate, way: i64) -> usize {
    let index = |(bits, direction, _): &(FrameBits, Direction, usize)| {
        assert_eq!(*direction == Direction::Backward, way < 0);
        i64::from(bits.time_code(rate).expect("a frame of this rate").index())
    };
    for pair in frames.windows(2) {
        assert_eq!(index(&pair[1]) - index(&pair[0]), way, "{rate:?}");
    }
    frames.len()
}

/// Frames of noise, from -1 to 1: a generator as in "Numerical Recipes".
fn noise(count: usize) -> impl Iterator<Item = f32> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(7_u32), next).take(count).map(|state| state as f32 / 2e9 - 1.0)
}

#[test]
fn every_frame_survives_the_way_through_its_bits() {
    for rate in VideoRate::ALL {
        for index in (0..2_073_600).step_by(11).chain(0..40_000) {
            let code = TimeCode::of(index, rate);
            let bits = FrameBits::of(code);
            assert_eq!(bits.time_code(rate), Some(code));
            assert_eq!(bits.0.count_ones() % 2, 0, "polarity");
        }
    }
    let dropped = FrameBits::of(TimeCode::of(9_000, VideoRate::Drop));
    assert_eq!(dropped.time_code(VideoRate::Thirty), None);
}

#[test]
fn bits_are_a_frame_only_with_their_sync_word() {
    let bits = FrameBits::of(TimeCode::of(100_000, VideoRate::Pal));
    let (mut window, mut found) = (BitWindow::default(), Vec::new());
    for round in 0..3 {
        for bit in 0..80 {
            found.extend(window.push(bits.0 >> bit & 1 != 0).map(|frame| (round, bit, frame)));
        }
    }
    let expected = (0..3).map(|round| (round, 79, (bits, Direction::Forward)));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn frames_of_all_rates_are_decoded_at_all_sample_rates() {
    for rate in VideoRate::ALL {
        for sample_rate_hz in [44_100, 48_000, 96_000, 192_000] {
            // Over a minute, where numbers are dropped.
            let from = 58 * sample_rate_hz;
            let frames = decoded(&sound(rate, sample_rate_hz, from, 4.0), sample_rate_hz);
            let count = count_in_order(&frames, rate, 1);
            assert!(count as f64 >= 4.0 * rate.frames_hz() - 3.0, "{rate:?}: {count}");
            for (bits, _, end) in frames {
                let index = f64::from(bits.time_code(rate).unwrap().index());
                let exact = (index + 1.0) / rate.frames_hz() * f64::from(sample_rate_hz);
                let off = f64::from(from) + end as f64 - exact;
                assert!(off.abs() <= 2.0, "{rate:?} {sample_rate_hz}: {off}");
            }
        }
    }
}

#[test]
fn frames_are_decoded_at_tape_speeds_in_both_directions() {
    for rate in [VideoRate::Film, VideoRate::Pal, VideoRate::Drop, VideoRate::Thirty] {
        let sound = sound(rate, RATE_HZ, 59 * RATE_HZ, 4.0);
        for speed in [0.5, 0.8, 0.97, 1.0, 1.03, 1.25] {
            let mut played = at_speed(&sound, speed);
            let least = 4.0 * rate.frames_hz() - 3.0;
            let count = count_in_order(&decoded(&played, RATE_HZ), rate, 1);
            assert!(count as f64 >= least, "{rate:?} at {speed}: {count}");
            played.reverse();
            let count = count_in_order(&decoded(&played, RATE_HZ), rate, -1);
            assert!(count as f64 >= least, "{rate:?} at -{speed}: {count}");
        }
    }
}

#[test]
fn weak_and_noisy_code_with_an_offset_is_decoded() {
    // Where a change of polarity takes several samples, noise turns back within it.
    let sound = sound(VideoRate::Pal, 192_000, 0, 4.0);
    // Peaks at -40 dBFS, noise 14 dB below, and an offset.
    let weak = sound.iter().zip(noise(sound.len()));
    let weak: Vec<f32> = weak.map(|(sample, noise)| sample * 0.08 + noise * 0.002 + 0.05).collect();
    let count = count_in_order(&decoded(&weak, 192_000), VideoRate::Pal, 1);
    assert!(count >= 97, "{count}");
}

#[test]
fn what_is_no_time_code_is_not_decoded() {
    let noise: Vec<f32> = noise(480_000).collect();
    assert_eq!(decoded(&noise, RATE_HZ), []);
    assert_eq!(decoded(&[f32::NAN, f32::INFINITY, 1e30, -1e30].repeat(10_000), RATE_HZ), []);
    // And code is decoded after it.
    let mut samples = noise;
    samples.extend([f32::NAN; 100]);
    samples.extend(sound(VideoRate::Pal, RATE_HZ, 0, 2.0));
    assert!(decoded(&samples, RATE_HZ).len() >= 45);
}

#[test]
fn the_signal_rises_within_what_the_standard_allows_and_stays_in_its_level() {
    // Changes anywhere between two samples.
    let sound = sound(VideoRate::Drop, 192_000, 0, 1.0);
    assert!(sound.iter().all(|sample| sample.abs() <= 0.125));
    let between = sound.iter().filter(|sample| sample.abs() < 0.1).count();
    let changes = sound.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count() * 2;
    let rise_us = between as f64 / changes as f64 / 0.192;
    assert!((39.0..41.0).contains(&rise_us), "{rise_us}");
    let mut silence = [1.0; 16];
    LtcEncoder::new(VideoRate::Pal, 48_000, 0.5).cycle(false, 100, &mut silence);
    assert_eq!(silence, [0.0; 16]);
}

proptest! {
    #[test]
    fn any_bits_are_decoded_as_they_were_sent(
        index in 0_u32..2_000_000, rate in 0_usize..5, speed in 0.8_f64..1.25, level in 0.01_f32..1.0,
    ) {
        let rate = VideoRate::ALL[rate];
        let from = (f64::from(index) / rate.frames_hz() * f64::from(RATE_HZ)) as u32;
        let mut encoder = LtcEncoder::new(rate, RATE_HZ, level);
        let mut samples = vec![0.0; 24_000];
        encoder.cycle(true, from, &mut samples);
        let frames = decoded(&at_speed(&samples, speed), RATE_HZ);
        prop_assert!(count_in_order(&frames, rate, 1) >= 9);
    }

    #[test]
    fn no_samples_end_the_decoder(samples in proptest::collection::vec(any::<f32>(), 0..2_000)) {
        decoded(&samples, RATE_HZ);
    }
}

/// A transport, which starts in the cycle after a request and rolls in the one after that, and the
/// tape that it follows.
struct Pair {
    follower: LtcFollower,
    encoder: LtcEncoder,
    begin: u32,
    /// Where the tape is, transport frames.
    tape: u32,
    tape_rolls: bool,
    frame: u32,
    starts: bool,
    rolls: bool,
    stops: u32,
}

impl Pair {
    fn new(rate: VideoRate, only: Option<VideoRate>) -> Self {
        Self {
            follower: LtcFollower::new(RATE_HZ, only),
            encoder: LtcEncoder::new(rate, RATE_HZ, 0.125),
            // Frame times wrap on the way.
            begin: u32::MAX - 10 * QUANTUM as u32 + 1,
            tape: 3600 * RATE_HZ,
            tape_rolls: true,
            frame: 0,
            starts: false,
            rolls: false,
            stops: 0,
        }
    }

    fn cycles(&mut self, cycles: u32, change: impl Fn(&mut [f32])) {
        for _ in 0..cycles {
            let mut samples = [0.0; QUANTUM];
            self.encoder.cycle(self.tape_rolls, self.tape, &mut samples);
            change(&mut samples);
            let (mut wishes, rolling) = (Vec::new(), self.rolls.then_some(self.frame));
            self.follower.cycle(self.begin, &samples, rolling, |wish| wishes.push(wish));
            let quantum = QUANTUM as u32;
            self.begin = self.begin.wrapping_add(quantum);
            self.tape += if self.tape_rolls { quantum } else { 0 };
            self.frame += if self.rolls { quantum } else { 0 };
            self.rolls |= std::mem::take(&mut self.starts);
            for wish in wishes {
                match wish {
                    Wish::Start => self.starts = true,
                    Wish::Stop => {
                        self.stops += u32::from(self.rolls);
                        self.rolls = false;
                    }
                    Wish::Locate(frame) => self.frame = frame,
                }
            }
        }
    }

    fn is_in_step(&self) -> bool {
        self.rolls && self.frame.abs_diff(self.tape) <= 2
    }
}

#[test]
fn the_transport_starts_jumps_and_stops_with_linear_time_code() {
    for rate in VideoRate::ALL {
        let mut pair = Pair::new(rate, None);
        pair.cycles(300, |_| {});
        assert!(pair.is_in_step(), "{rate:?}: {} and {}", pair.frame, pair.tape);
        pair.tape = RATE_HZ * 60;
        pair.cycles(300, |_| {});
        assert!(pair.is_in_step(), "{rate:?} after a jump");
        assert_eq!(pair.stops, 1);
        pair.tape_rolls = false;
        pair.cycles(60, |_| {});
        assert!(!pair.rolls, "{rate:?} stops");
    }
}

#[test]
fn one_lost_frame_does_not_stop_the_transport() {
    let mut pair = Pair::new(VideoRate::Pal, None);
    pair.cycles(300, |_| {});
    pair.cycles(1, |samples| samples.fill(0.0));
    pair.cycles(100, |_| {});
    assert!(pair.is_in_step());
    assert_eq!(pair.stops, 0);
}

#[test]
fn code_of_another_rate_than_the_requested_one_is_not_followed() {
    for (rate, only) in [(VideoRate::Thirty, VideoRate::Pal), (VideoRate::NonDrop, VideoRate::Drop)]
    {
        let mut pair = Pair::new(rate, Some(only));
        pair.cycles(400, |_| {});
        assert!(!pair.rolls, "{rate:?}");
    }
}
