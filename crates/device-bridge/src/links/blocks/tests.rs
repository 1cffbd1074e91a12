//! A loudspeaker, a microphone and the source that programs record, each with its own clock.

use client::stream::Timing;
use convert::{ChannelMap, Mixing};
use effects::{Method, Speex};

use super::super::alignment::{Alignment, AlignmentShape, CHUNK, Step};
use super::super::options::LinkMix;
use super::super::reference::{EARLIER_NS, ReferenceShape};
use super::super::tests::Clock;
use super::*;
use crate::tests::{TAU, lateness};

/// All rates are low, so that minutes are computed quickly.
const RATE_HZ: u32 = 16_000;
/// From when a frame is played until it is heard, and from when it is captured until it is passed
/// on.
const PLAYED_NS: u64 = 100_000_000;
const CAPTURED_NS: u64 = 120_000_000;
/// The way through the air.
const AIR_NS: f64 = 12e6;
/// How often each device wakes, ns: not in step.
const CAPTURED_EVERY_NS: f64 = 15e6;
const PLAYED_EVERY_NS: f64 = 13e6;
const HEARD_EVERY_NS: f64 = 47e6;

const PLAIN: Speex = Speex {
    filter_ms: 100,
    gain_control: false,
    denoise: false,
    suppress: false,
    suppress_db: None,
    suppress_active_db: None,
};

/// Sound as a function of a frame that need not be whole: tones that together are like noise, and
/// begin again after [`PERIOD`] frames, which is longer than any echo.
struct Noise(Vec<f64>);

const PERIOD: usize = 4_096;
/// Values between two frames.
const STEPS: usize = 16;

impl Noise {
    fn new() -> Self {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        let mut sums = vec![0.0; PERIOD * STEPS];
        for _ in 0..150 {
            let (turns, phase) = ((40.0 + 1_600.0 * next()).floor() / sums.len() as f64, next());
            for (at, sum) in sums.iter_mut().enumerate() {
                *sum += 0.03 * (TAU * (at as f64 * turns + phase).fract()).sin();
            }
        }
        Self(sums)
    }

    fn at(&self, frame: f64) -> f64 {
        let at = frame.rem_euclid(PERIOD as f64) * STEPS as f64;
        let value = |at: usize| self.0[at % self.0.len()];
        let before = at.floor();
        let (from, to) = (value(before as usize), value(before as usize + 1));
        from + (to - from) * (at - before)
    }
}

struct Room<Far: Fn(f64) -> f64, Near: Fn(f64) -> f64> {
    /// What plays, captures, and is recorded.
    speaker: Clock,
    microphone: Clock,
    source: Clock,
    /// What is played, by the speaker's frame, and what is said into the microphone, by its own.
    far: Far,
    near: Near,
    alignment: Alignment,
    blocks: Blocks,
    now_ns: f64,
    first: u64,
    next: u64,
    far_next: u64,
    /// Whether the reference is passed on, instead of what is left of the echo.
    shows_reference: bool,
}

fn mono() -> ChannelMap {
    "mono".parse().expect("a map")
}

impl<Far: Fn(f64) -> f64, Near: Fn(f64) -> f64> Room<Far, Near> {
    fn new(
        [speaker, microphone, source]: [Clock; 3],
        method: Method,
        far: Far,
        near: Near,
    ) -> Self {
        let alignment = Alignment::new(AlignmentShape {
            channels: 1,
            source_hz: RATE_HZ,
            sink_hz: RATE_HZ,
            latency_ns: CAPTURED_NS,
        });
        let mix = LinkMix { from: mono(), via: None, to: mono(), mixing: Mixing::Mixed };
        let reference = Reference::new(ReferenceShape {
            mix,
            far_hz: RATE_HZ,
            sink_hz: RATE_HZ,
            later_ns: PLAYED_NS + CAPTURED_NS,
        });
        let canceller = Canceller::new(method, 20, 1, RATE_HZ).expect("libspeexdsp");
        let now_ns = source.begin_ns.max(microphone.begin_ns).max(speaker.begin_ns);
        Self {
            blocks: Blocks::new(reference.expect("rates"), canceller, 1),
            alignment: alignment.expect("rates"),
            first: microphone.frame_at(now_ns).ceil() as u64,
            next: source.frame_at(now_ns).ceil() as u64,
            far_next: speaker.frame_at(now_ns).ceil() as u64,
            now_ns,
            speaker,
            microphone,
            source,
            far,
            near,
            shows_reference: false,
        }
    }

    fn timing(clock: &Clock, now_ns: f64, every_ns: f64) -> Timing {
        clock.timing(((now_ns / every_ns).floor() * every_ns).max(clock.begin_ns))
    }

    fn captured(&self, frame: u64) -> f32 {
        let heard_ns = self.microphone.time_of(frame as f64);
        let played = self.speaker.frame_at(heard_ns - PLAYED_NS as f64 - AIR_NS);
        (0.3 * (self.far)(played) + (self.near)(frame as f64)) as f32
    }

    /// Runs for some time, and returns what is passed on, from which position on.
    fn run(&mut self, seconds: f64) -> (u64, Vec<f32>) {
        let end_ns = self.now_ns + seconds * 1e9;
        let (mut begin, mut heard) = (self.next - self.blocks.waiting() as u64, Vec::new());
        while self.now_ns < end_ns {
            self.now_ns += CAPTURED_EVERY_NS;
            let microphone = self.microphone.timing(self.now_ns);
            let speaker = Self::timing(&self.speaker, self.now_ns, PLAYED_EVERY_NS);
            let source = Self::timing(&self.source, self.now_ns, HEARD_EVERY_NS);
            if self.far_next < speaker.position {
                let frames = self.far_next..speaker.position;
                let played: Vec<f32> =
                    frames.map(|frame| (self.far)(frame as f64) as f32).collect();
                self.blocks.reference.push(self.far_next, &[&played]);
                self.far_next = speaker.position;
            }
            self.blocks.reference.align(speaker, self.next, source);
            while self.first + CHUNK as u64 <= microphone.position {
                let captured: Vec<f32> =
                    (self.first..).take(CHUNK).map(|frame| self.captured(frame)).collect();
                self.alignment.input(0).copy_from_slice(&captured);
                match self.alignment.step(self.first, microphone, self.next, source) {
                    Step::Play(frames) => {
                        self.first += CHUNK as u64;
                        let piece = self.alignment.output(0).to_vec();
                        self.pass(&piece, &mut heard);
                        self.next += frames as u64;
                    }
                    Step::Silence(frames) => {
                        self.blocks.restart();
                        self.next += frames;
                        (begin, heard) = (self.next, Vec::new());
                    }
                    Step::Skip(frames) => self.first += frames,
                }
            }
        }
        (begin, heard)
    }

    fn pass(&mut self, piece: &[f32], heard: &mut Vec<f32>) {
        if self.shows_reference {
            let mut played = vec![vec![0.0; piece.len()]];
            self.blocks.reference.take(self.next, &mut played);
            heard.append(&mut played[0]);
        } else {
            self.blocks.write(self.next, &[piece], |planes| heard.extend_from_slice(planes[0]));
        }
    }
}

/// Three clocks that are off by this much, whose devices began at other times.
fn clocks(drifts: [f64; 3]) -> [Clock; 3] {
    let clock = |drift: f64, begin_ns: f64| Clock {
        nominal_hz: RATE_HZ,
        drift,
        jitter_ns: 20_000.0,
        begin_ns: 1e15 + begin_ns,
    };
    [clock(drifts[0], -3.3e9), clock(drifts[1], -7e9), clock(drifts[2], 0.0)]
}

fn power_db(samples: &[f32]) -> f64 {
    let power = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>();
    10.0 * (power / samples.len() as f64).max(1e-12).log10()
}

/// The level of a tone, dB of its power.
fn tone_db(samples: &[f32], turns: f64) -> f64 {
    let part = |function: fn(f64) -> f64| {
        let all = samples.iter().enumerate();
        all.map(|(at, sample)| f64::from(*sample) * function(TAU * turns * at as f64)).sum::<f64>()
    };
    let peak = 2.0 * part(f64::sin).hypot(part(f64::cos)) / samples.len() as f64;
    10.0 * (peak * peak / 2.0).max(1e-12).log10()
}

#[test]
fn what_was_played_comes_at_a_constant_time_before_its_echo_at_any_drift() {
    const TURNS: f64 = 1.0 / 16.0;
    for drifts in [[0.0; 3], [200e-6, -200e-6, 0.0], [-200e-6, 200e-6, 100e-6]] {
        let tone = |frame: f64| 0.5 * (TAU * (frame * TURNS).fract()).sin();
        let mut room = Room::new(clocks(drifts), Method::Null, tone, |_| 0.0);
        room.shows_reference = true;
        room.run(30.0);
        let (mut at, heard) = room.run(60.0);
        let mut worst = 0.0_f64;
        for piece in heard.chunks_exact(CHUNK) {
            let due = |position: f64| {
                let earlier_ns = (PLAYED_NS + CAPTURED_NS - EARLIER_NS) as f64;
                room.speaker.frame_at(room.source.time_of(position) - earlier_ns)
            };
            let step = due(at as f64 + 1.0) - due(at as f64);
            worst = worst.max(lateness(piece, due(at as f64), step, TURNS).abs());
            at += CHUNK as u64;
        }
        assert!(worst < 0.5, "{drifts:?}: {worst} frames");
    }
}

#[test]
fn what_was_played_is_not_off_by_whole_periods_of_a_tone() {
    // Its value says which frame it is.
    const STEP: f64 = 1e-5;
    let clocks = clocks([0.0; 3]);
    let begin = clocks[0].frame_at(clocks[2].begin_ns);
    let ramp = |frame: f64| STEP * (frame - begin).max(0.0);
    let mut room = Room::new(clocks, Method::Null, ramp, |_| 0.0);
    room.shows_reference = true;
    room.run(1.0);
    let (at, heard) = room.run(3.0);
    for (position, value) in (at..).zip(&heard) {
        let earlier_ns = (PLAYED_NS + CAPTURED_NS - EARLIER_NS) as f64;
        let due = room.speaker.frame_at(room.source.time_of(position as f64) - earlier_ns);
        let found = f64::from(*value) / STEP + begin;
        assert!((found - due).abs() < 4.0, "{found} instead of {due}");
    }
    assert!(heard.len() > 2 * RATE_HZ as usize);
}

#[test]
fn an_echo_is_20_db_quieter_and_what_is_near_as_loud_at_any_drift() {
    const TURNS: f64 = 1.0 / 16.0;
    for drifts in [[0.0; 3], [60e-6, -60e-6, 0.0]] {
        let noise = Noise::new();
        let far = |frame: f64| noise.at(frame);
        let heard = |method: Method, peak: f64| {
            let near = |frame: f64| peak * (TAU * (frame * TURNS).fract()).sin();
            let mut room = Room::new(clocks(drifts), method, far, near);
            room.run(14.0);
            room.run(2.0).1
        };
        let before = power_db(&heard(Method::Null, 0.0));
        let after = power_db(&heard(Method::Speex(PLAIN), 0.0));
        assert!(before > -25.0 && after < before - 20.0, "{drifts:?}: {before} to {after} dB");
        let tone =
            tone_db(&heard(Method::Speex(PLAIN), 0.05), TURNS * (1.0 + drifts[1] - drifts[2]));
        let expected = 10.0 * (0.05_f64.powi(2) / 2.0).log10();
        assert!((tone - expected).abs() < 1.0, "{drifts:?}: {tone} instead of {expected} dB");
    }
}

#[test]
fn what_was_not_played_is_silence_and_what_waits_is_forgotten_by_a_restart() {
    let mut room = Room::new(clocks([0.0; 3]), Method::Null, |_| 0.0, |_| 0.5);
    let block = room.blocks.block();
    let mut played = vec![vec![1.0; 8]];
    room.blocks.reference.take(1_000, &mut played);
    assert_eq!(played, [[0.0; 8]]);
    let mut passed = Vec::new();
    let piece = vec![0.25; block - 1];
    room.blocks.write(0, &[&piece], |planes| passed.extend_from_slice(planes[0]));
    assert_eq!((passed.len(), room.blocks.waiting(), room.blocks.missing()), (0, block - 1, 1));
    room.blocks.restart();
    assert_eq!((room.blocks.waiting(), room.blocks.missing()), (0, 0));
    room.blocks.write(5_000, &[&vec![0.5; block]], |planes| passed.extend_from_slice(planes[0]));
    assert_eq!(passed, vec![0.5; block]);
}
