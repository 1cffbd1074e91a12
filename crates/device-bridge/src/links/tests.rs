//! Two devices with simulated clocks, and what goes from one to the other.

use client::stream::Timing;
use proptest::prelude::*;

use super::alignment::{Alignment, AlignmentShape, CHUNK, Step};
use crate::tests::{TAU, distortion_db, lateness};

const LATENCY_NS: u64 = 200_000_000;
/// How long a device measures its rate before it publishes that.
const RATE_AFTER_NS: f64 = 2e9;

/// A device whose clock is off its nominal rate by `drift`, and whose published times are late by
/// up to `jitter_ns`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) nominal_hz: u32,
    pub(super) drift: f64,
    pub(super) jitter_ns: f64,
    /// When frame 0 is heard, ns.
    pub(super) begin_ns: f64,
}

impl Clock {
    pub(super) fn time_of(&self, frame: f64) -> f64 {
        self.begin_ns + frame * 1e9 / (f64::from(self.nominal_hz) * (1.0 + self.drift))
    }

    pub(super) fn frame_at(&self, time_ns: f64) -> f64 {
        (time_ns - self.begin_ns) * f64::from(self.nominal_hz) * (1.0 + self.drift) / 1e9
    }

    /// What the device publishes when it wakes at about `time_ns`: its clock as it knows it.
    pub(super) fn timing(&self, time_ns: f64) -> Timing {
        let frame = self.frame_at(time_ns).max(0.0).floor();
        let mixed = (frame as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40;
        let late_ns = self.jitter_ns * noise as f64 / f64::from(1_u32 << 24);
        let at_ns = self.time_of(frame) + late_ns;
        // As measured since it was started.
        let passed_ns = at_ns - self.begin_ns;
        let is_long = passed_ns >= RATE_AFTER_NS;
        let frame_ns = if is_long { passed_ns / frame } else { 1e9 / f64::from(self.nominal_hz) };
        Timing {
            at_ns: at_ns.round() as u64,
            device_frame: frame as u64,
            position: frame as u64,
            until: u64::MAX,
            frame_ps: (frame_ns * 1e3).round() as u64,
            latency_ns: 0,
        }
    }
}

/// A link between two devices, of which the source has a tone of `turns` per frame.
struct Simulation {
    source: Clock,
    sink: Clock,
    alignment: Alignment,
    turns: f64,
    now_ns: f64,
    /// The next frame of the source, and of the sink.
    first: u64,
    next: u64,
    silence: u64,
    skipped: u64,
}

/// How often each side wakes, ns: not in step.
const SOURCE_WAKES_NS: f64 = 25e6;
const SINK_WAKES_NS: f64 = 83e6;

impl Simulation {
    fn new(source: Clock, sink: Clock, turns: f64) -> Self {
        let shape = AlignmentShape {
            channels: 1,
            source_hz: source.nominal_hz,
            sink_hz: sink.nominal_hz,
            latency_ns: LATENCY_NS,
        };
        let alignment = Alignment::new(shape).unwrap();
        let now_ns = source.begin_ns.max(sink.begin_ns);
        let first = source.frame_at(now_ns).ceil() as u64;
        let next = sink.frame_at(now_ns).ceil() as u64;
        Self { source, sink, alignment, turns, now_ns, first, next, silence: 0, skipped: 0 }
    }

    /// Runs for some time, and calls back for each piece that is played, with its first position
    /// and its samples.
    fn run(&mut self, seconds: f64, mut heard: impl FnMut(&Self, u64, &[f32])) {
        let end_ns = self.now_ns + seconds * 1e9;
        while self.now_ns < end_ns {
            self.now_ns += SOURCE_WAKES_NS;
            let source = self.source.timing(self.now_ns);
            let woken_ns = (self.now_ns / SINK_WAKES_NS).floor() * SINK_WAKES_NS;
            let sink = self.sink.timing(woken_ns.max(self.sink.begin_ns));
            while self.first + CHUNK as u64 <= source.position {
                self.fill();
                match self.alignment.step(self.first, source, self.next, sink) {
                    Step::Play(frames) => {
                        let at = self.next;
                        self.first += CHUNK as u64;
                        self.next += frames as u64;
                        heard(self, at, self.alignment.output(0));
                    }
                    Step::Silence(frames) => {
                        self.next += frames;
                        self.silence += frames;
                    }
                    Step::Skip(frames) => {
                        self.first += frames;
                        self.skipped += frames;
                    }
                }
            }
        }
    }

    fn fill(&mut self) {
        let (first, turns) = (self.first, self.turns);
        for (frame, sample) in (first..).zip(self.alignment.input(0)) {
            *sample = (0.5 * (TAU * (frame as f64 * turns).fract()).sin()) as f32;
        }
    }

    /// By how many of its frames the source's tone is late in what is played from position `at`
    /// on, beyond the latency.
    fn lateness(&self, at: u64, samples: &[f32]) -> f64 {
        let due =
            |position: f64| self.source.frame_at(self.sink.time_of(position) - LATENCY_NS as f64);
        let step = due(at as f64 + 1.0) - due(at as f64);
        lateness(samples, due(at as f64), step, self.turns)
    }
}

const EXACT: Clock = Clock { nominal_hz: 48_000, drift: 0.0, jitter_ns: 0.0, begin_ns: 1e15 };
/// A piece has whole periods of it, so that its phase can be told from one piece.
const TONE_TURNS: f64 = 1.0 / 16.0;
/// A low rate, so that the hour is computed quickly: all results are in frames.
const HOUR_HZ: u32 = 8_000;
const HOUR_S: f64 = 3_600.0;
/// Half a minute, in which the loop finds the drift of the clocks.
const FOUND_AFTER_S: f64 = 30.0;

#[test]
fn the_latency_stays_exact_to_a_frame_for_an_hour_at_any_drift() {
    let clock = Clock { nominal_hz: HOUR_HZ, ..EXACT };
    for (source, sink) in [(200e-6, -200e-6), (-200e-6, 200e-6), (0.0, 200e-6), (0.0, 0.0)] {
        // Times are late by a quarter of a frame at most, and the source began earlier.
        let source = Clock { drift: source, jitter_ns: 30_000.0, begin_ns: 1e15 - 7e9, ..clock };
        let sink = Clock { drift: sink, jitter_ns: 30_000.0, ..clock };
        let mut simulation = Simulation::new(source, sink, TONE_TURNS);
        simulation.run(FOUND_AFTER_S, |_, _, _| {});
        let (silence, mut worst, mut pieces) = (simulation.silence, 0.0_f64, 0);
        simulation.run(HOUR_S, |simulation, at, samples| {
            pieces += 1;
            worst = worst.max(simulation.lateness(at, samples).abs());
        });
        let (alignment, apart) = (&simulation.alignment, sink.drift - source.drift);
        assert!(worst < 0.25 && pieces > 400_000, "{apart}: {worst} frames in {pieces} pieces");
        assert_eq!((alignment.locks(), simulation.skipped), (1, 0), "{apart}");
        assert_eq!(simulation.silence, silence, "only at the beginning");
        assert!((alignment.drift() - apart).abs() < 5e-6, "{apart}: {}", alignment.drift());
    }
}

#[test]
fn a_tone_on_another_device_has_less_than_100_db_of_distortion() {
    const COUNT: usize = 1 << 17;
    let fast = Clock { drift: 200e-6, ..EXACT };
    let slow = Clock { drift: -200e-6, ..EXACT };
    // A card's times are late by some of its frames; the null device's are exact.
    let jitter = |clock: Clock| Clock { jitter_ns: 40_000.0, ..clock };
    let other = Clock { nominal_hz: 44_100, ..fast };
    for (source, sink) in [(EXACT, EXACT), (fast, slow), (EXACT, jitter(slow)), (slow, other)] {
        for hz in [1_000.0, 10_007.0] {
            let turns = hz / f64::from(source.nominal_hz);
            let mut simulation = Simulation::new(source, sink, turns);
            let mut played = Vec::new();
            simulation.run(45.0, |_, _, samples| played.extend_from_slice(samples));
            let source_hz = f64::from(source.nominal_hz) * (1.0 + source.drift);
            let seen = turns * source_hz / (f64::from(sink.nominal_hz) * (1.0 + sink.drift));
            let distortion = distortion_db(&played[played.len() - COUNT..], seen);
            assert!(distortion < -100.0, "{hz} Hz, {source:?}, {sink:?}: {distortion} dB");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn after_any_gap_of_either_device_the_latency_is_the_same(
        gaps in prop::collection::vec((any::<bool>(), 6_000_000_u64..400_000_000), 1..5),
        drift in -200e-6..200e-6,
    ) {
        let source = Clock { nominal_hz: HOUR_HZ, drift, begin_ns: 1e15 - 3e9, ..EXACT };
        let sink = Clock { nominal_hz: HOUR_HZ, ..EXACT };
        let mut simulation = Simulation::new(source, sink, TONE_TURNS);
        simulation.run(10.0, |_, _, _| {});
        for (at_source, gap_ns) in &gaps {
            let late = if *at_source { &mut simulation.source } else { &mut simulation.sink };
            late.begin_ns += *gap_ns as f64;
            let locks = simulation.alignment.locks();
            simulation.run(10.0, |_, _, _| {});
            prop_assert_eq!(simulation.alignment.locks(), locks + 1);
            let mut worst = 0.0_f64;
            simulation.run(2.0, |simulation, at, samples| {
                worst = worst.max(simulation.lateness(at, samples).abs());
            });
            prop_assert!(worst < 0.5, "{} frames", worst);
        }
    }
}
