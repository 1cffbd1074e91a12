//! Both directions with simulated clocks: the graph's is the reference.

use std::sync::Arc;

use realfft::RealFftPlanner;

use super::*;

pub(crate) const TAU: f64 = std::f64::consts::TAU;
const GRAPH_QUANTUM: u32 = 1024;

/// A device whose clock is off its nominal rate by `drift`, and whose timestamps are late by up to
/// `jitter_frames` of the graph.
#[derive(Clone, Copy)]
struct Clock {
    graph_hz: f64,
    nominal_hz: f64,
    drift: f64,
    jitter_frames: f64,
}

impl Clock {
    /// The true frame of the graph at the device's frame `frame`.
    fn graph_at(&self, frame: f64) -> f64 {
        12_345.6 + frame * self.graph_hz / (self.nominal_hz * (1.0 + self.drift))
    }

    /// The frame of the graph according to the device's timestamp.
    fn observed(&self, frame: u64) -> f64 {
        // A pseudo-random number.
        let mixed = frame.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40;
        self.graph_at(frame as f64) + self.jitter_frames * noise as f64 / f64::from(1_u32 << 24)
    }

    fn layout(&self, quantum: u32) -> Layout {
        Layout {
            channels: 1,
            graph_hz: self.graph_hz,
            device_hz: self.nominal_hz,
            device_quantum: quantum,
            device_queue: 3 * quantum,
            margin: 512,
        }
    }
}

/// Fills `samples` with a tone of `turns` per frame, from the graph's frame `at` on, in steps of
/// `step`.
fn fill(samples: &mut [f32], at: f64, step: f64, turns: f64) {
    let (sine, cosine) = (TAU * step * turns).sin_cos();
    let (mut y, mut x) = (TAU * (at * turns).fract()).sin_cos();
    for sample in samples {
        *sample = (0.5 * y) as f32;
        (x, y) = (x * cosine - y * sine, y * cosine + x * sine);
    }
}

/// Captures a tone of `turns` per frame of the graph for some seconds, and calls back for each
/// cycle of the graph with its first frame, less the latency, and its samples.
fn capture(
    clock: Clock,
    quantum: u32,
    seconds: f64,
    turns: f64,
    mut heard: impl FnMut(f64, &[f32]),
) -> BridgeStats {
    let layout = clock.layout(quantum);
    let timeline = Arc::new(Timeline::new(1));
    let mut bridge = CaptureBridge::new(layout, Arc::clone(&timeline)).unwrap();
    let latency = layout.capture_latency(GRAPH_QUANTUM);
    let (mut frame, mut cycle) = (0_u64, 13_312_u64);
    let mut samples = vec![0.0; GRAPH_QUANTUM as usize];
    while frame < (seconds * clock.nominal_hz) as u64 {
        let (at, next) = (clock.graph_at(frame as f64), clock.graph_at((frame + 1) as f64));
        fill(bridge.channel(0).unwrap(), at, next - at, turns);
        frame += u64::from(quantum);
        let now = clock.graph_at(frame as f64);
        // Cycles that begin before the device wakes, which is as late as the margin allows.
        while (cycle as f64) < now {
            let found = timeline.get(0, cycle, &mut samples);
            if cycle as f64 > 13_312.0 + f64::from(2 * latency) {
                assert_eq!(
                    found,
                    samples.len(),
                    "frame {frame}: there is nothing for cycle {cycle}"
                );
                heard(cycle as f64 - f64::from(latency), &samples);
            }
            cycle += u64::from(GRAPH_QUANTUM);
        }
        bridge.cycle(clock.observed(frame), latency);
    }
    bridge.stats()
}

/// Plays such a tone for some seconds, and calls back for each cycle of the device with the graph's
/// frames at its first and its second frame, less the latency, and its samples.
fn playback(
    clock: Clock,
    quantum: u32,
    seconds: f64,
    turns: f64,
    mut heard: impl FnMut(f64, f64, &[f32]),
) -> BridgeStats {
    let layout = clock.layout(quantum);
    let timeline = Arc::new(Timeline::new(1));
    let mut bridge = PlaybackBridge::new(layout, Arc::clone(&timeline)).unwrap();
    let latency = layout.playback_latency(GRAPH_QUANTUM);
    let (mut frame, mut cycle) = (0_u64, 0_u64);
    let mut samples = vec![0.0; GRAPH_QUANTUM as usize];
    while frame < (seconds * clock.nominal_hz) as u64 {
        frame += u64::from(quantum);
        // Cycles that have ended by now, each at the end of its own quantum.
        while ((cycle + u64::from(GRAPH_QUANTUM)) as f64) < clock.graph_at(frame as f64) {
            fill(&mut samples, cycle as f64, 1.0, turns);
            timeline.begin_at(cycle);
            timeline.put(0, cycle, &samples);
            cycle += u64::from(GRAPH_QUANTUM);
            timeline.publish(cycle);
        }
        bridge.cycle(clock.observed(frame), latency);
        let ahead = f64::from(layout.device_queue - quantum);
        let at = |index: f64| clock.graph_at(frame as f64 + ahead + index) - f64::from(latency);
        let samples = bridge.channel(0);
        assert_eq!(samples.len(), quantum as usize);
        heard(at(0.0), at(1.0), samples);
    }
    bridge.stats()
}

/// Returns by how many frames a tone is late that should begin at the graph's frame `at`, with
/// `step` frames of the graph between two samples.
pub(crate) fn lateness(samples: &[f32], at: f64, step: f64, turns: f64) -> f64 {
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (index, sample) in samples.iter().enumerate() {
        let place = at + step * index as f64;
        let phase = TAU * (place * turns).fract();
        sine += f64::from(*sample) * phase.sin();
        cosine += f64::from(*sample) * phase.cos();
    }
    -cosine.atan2(sine) / TAU / turns
}

/// Everything in `samples` but a tone of `turns` per sample, in dB relative to the tone.
pub(crate) fn distortion_db(samples: &[f32], turns: f64) -> f64 {
    let count = samples.len();
    let mut input: Vec<f64> = samples
        .iter()
        .enumerate()
        .map(|(index, sample)| {
            let place = TAU * index as f64 / count as f64;
            // Blackman-Harris, four terms: side lobes at -92 dB, and a main lobe of a few bins.
            let window = 0.35875 - 0.48829 * place.cos() + 0.14128 * (2.0 * place).cos()
                - 0.01168 * (3.0 * place).cos();
            f64::from(*sample) * window
        })
        .collect();
    let transform = RealFftPlanner::<f64>::new().plan_fft_forward(count);
    let mut bins = transform.make_output_vec();
    transform.process(&mut input, &mut bins).unwrap();
    let middle = (turns * count as f64).round() as usize;
    // 20 Hz at 48 kHz to both sides, like the notch of an analyser.
    let notch = (20.0 / 48_000.0 * count as f64).ceil() as usize;
    let (mut tone, mut rest) = (0.0, 0.0);
    for (index, bin) in bins.iter().enumerate().skip(notch) {
        let power = bin.norm_sqr();
        if index.abs_diff(middle) <= notch { tone += power } else { rest += power }
    }
    10.0 * f64::log10(rest / tone)
}

const FAST: Clock =
    Clock { graph_hz: 48_000.0, nominal_hz: 48_000.0, drift: 200e-6, jitter_frames: 0.0 };
const SLOW: Clock = Clock { drift: -200e-6, ..FAST };

/// The largest error of the stated latency in an hour, once the loop has found the drift.
/// Timestamps are late by up to `JITTER_FRAMES`, and so by half of that on average.
struct Hour {
    cycles: u32,
    worst: f64,
}

const JITTER_FRAMES: f64 = 2.4;
const HOUR_S: f64 = 3_600.0;
const TONE_TURNS: f64 = 1.0 / 48.0;
/// A low rate, so that the hour is computed quickly: all results are in frames.
const HOUR_HZ: f64 = 8_000.0;

impl Hour {
    fn new() -> Self {
        Self { cycles: 0, worst: 0.0 }
    }

    fn note(&mut self, samples: &[f32], at: f64, step: f64, average_lateness: f64) {
        self.cycles += 1;
        if self.cycles > 500 && self.cycles.is_multiple_of(4) {
            let off = lateness(samples, at, step, TONE_TURNS) - average_lateness;
            self.worst = self.worst.max(off.abs());
        }
    }
}

#[test]
fn capture_latency_stays_exact_to_a_sample_over_an_hour() {
    let (clock, mut hour) = (
        Clock { graph_hz: HOUR_HZ, nominal_hz: HOUR_HZ, jitter_frames: JITTER_FRAMES, ..SLOW },
        Hour::new(),
    );
    let stats = capture(clock, 256, HOUR_S, TONE_TURNS, |at, samples| {
        hour.note(samples, at, 1.0, JITTER_FRAMES / 2.0);
    });
    assert!(
        hour.worst < 0.5 && hour.cycles > 28_000,
        "{} frames in {} cycles",
        hour.worst,
        hour.cycles
    );
    assert_eq!(stats.locks, 1, "{stats:?}");
    assert!((stats.drift - clock.drift).abs() < 5e-6, "{stats:?}");
}

#[test]
fn playback_latency_stays_exact_to_a_sample_over_an_hour() {
    let (clock, mut hour) = (
        Clock { graph_hz: HOUR_HZ, nominal_hz: HOUR_HZ, jitter_frames: JITTER_FRAMES, ..FAST },
        Hour::new(),
    );
    let stats = playback(clock, 256, HOUR_S, TONE_TURNS, |at, next, samples| {
        hour.note(samples, at, next - at, -JITTER_FRAMES / 2.0);
    });
    assert!(
        hour.worst < 0.5 && hour.cycles > 28_000,
        "{} frames in {} cycles",
        hour.worst,
        hour.cycles
    );
    assert_eq!(stats.locks, 1, "{stats:?}");
    assert!((stats.drift - clock.drift).abs() < 5e-6, "{stats:?}");
}

#[test]
fn a_resampled_tone_has_less_than_100_db_of_distortion() {
    const COUNT: usize = 1 << 17;
    for (clock, jitter_frames) in
        [(FAST, 0.0), (SLOW, 2.0), (Clock { nominal_hz: 44_100.0, ..FAST }, 0.0)]
    {
        let clock = Clock { jitter_frames, ..clock };
        for hz in [997.0, 10_007.0] {
            let turns = hz / clock.graph_hz;
            let mut captured = Vec::new();
            capture(clock, 256, 30.0, turns, |_, samples| captured.extend_from_slice(samples));
            let captured = distortion_db(&captured[captured.len() - COUNT..], turns);
            let mut played = Vec::new();
            playback(clock, 256, 30.0, turns, |_, _, samples| played.extend_from_slice(samples));
            // The tone's frequency at the device's rate and by its clock.
            let seen = hz / (clock.nominal_hz * (1.0 + clock.drift));
            let played = distortion_db(&played[played.len() - COUNT..], seen);
            assert!(captured < -100.0 && played < -100.0, "{hz} Hz: {captured} dB, {played} dB");
        }
    }
}
