//! From samples to frames of linear time code, at any speed in both directions.

use super::frame::{BitWindow, Direction, FrameBits};

/// The weakest signal that is read: -60 dB below full scale from peak to peak.
const LEAST_SPAN: f32 = 0.002;
/// How far beyond the middle a signal must go to count as having crossed it, relative to the
/// distance of its peaks: noise does less.
const HYSTERESIS: f32 = 0.15;
/// How long a peak is remembered, s: longer than a bit at half the slowest speed.
const PEAK_S: f64 = 0.005;
/// Changes of polarity after which the longest distance of two is the length of a bit: no 32 bits
/// of a frame are all ones.
const CHANGES_TO_MEASURE: u32 = 64;
/// Limits of a half bit and a bit, relative to the length of a bit.
const SHORTEST: f64 = 0.3;
const BOUNDARY: f64 = 0.75;
const LONGEST: f64 = 1.5;
/// The weight of a new bit in their average length: the speed may change by a few percent a frame.
const WEIGHT: f64 = 0.1;

/// Finds changes of polarity.
#[derive(Debug, Clone)]
struct Crossings {
    /// The part of their distance by which the peaks approach each other with each sample.
    decay: f32,
    highest: f32,
    lowest: f32,
    is_positive: bool,
}

impl Crossings {
    fn new(sample_rate_hz: u32) -> Self {
        let decay = (1.0 / (f64::from(sample_rate_hz) * PEAK_S)) as f32;
        Self { decay, highest: 0.0, lowest: 0.0, is_positive: false }
    }

    /// Returns whether the signal changes its polarity with this sample.
    fn take(&mut self, sample: f32) -> bool {
        let fade = (self.highest - self.lowest) * self.decay;
        // Numbers that are none would stay for ever.
        let sample = if sample.is_finite() { sample.clamp(-16.0, 16.0) } else { 0.0 };
        self.highest = sample.max(self.highest - fade);
        self.lowest = sample.min(self.lowest + fade);
        let span = self.highest - self.lowest;
        let beyond = sample - (self.highest + self.lowest) / 2.0;
        let beyond = if self.is_positive { -beyond } else { beyond };
        let changes = span > LEAST_SPAN && beyond > span * HYSTERESIS;
        self.is_positive ^= changes;
        changes
    }
}

/// What is known of the length of a bit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BitLength {
    /// The longest distance of this number of changes, in samples.
    Measuring { longest: u32, changes: u32 },
    /// Samples.
    Known(f64),
}

/// A decoded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LtcFrame {
    /// Its bits.
    pub(super) bits: FrameBits,
    /// Which way it was read.
    pub(super) direction: Direction,
    /// The sample with which it ended, counted from the first one in this call.
    pub(super) end: usize,
}

/// Reads linear time code. Thread: cycle.
#[derive(Debug, Clone)]
pub(super) struct LtcDecoder {
    crossings: Crossings,
    /// Samples since the last change.
    since: u32,
    bit: BitLength,
    /// Length of the first half of a one whose second half has not ended.
    half: Option<u32>,
    window: BitWindow,
}

/// A longer distance is a silence. Samples.
const LONGEST_SILENCE: u32 = 1 << 20;

impl LtcDecoder {
    pub(super) fn new(sample_rate_hz: u32) -> Self {
        Self {
            crossings: Crossings::new(sample_rate_hz),
            since: 0,
            bit: BitLength::Measuring { longest: 0, changes: 0 },
            half: None,
            window: BitWindow::default(),
        }
    }

    /// Reads samples, and passes on each frame that ends in them.
    pub(super) fn read(&mut self, samples: &[f32], mut found: impl FnMut(LtcFrame)) {
        for (end, sample) in samples.iter().enumerate() {
            self.since = (self.since + 1).min(LONGEST_SILENCE);
            if !self.crossings.take(*sample) {
                continue;
            }
            let distance = std::mem::take(&mut self.since);
            if let Some((bits, direction)) = self.change(distance) {
                found(LtcFrame { bits, direction, end });
            }
        }
    }

    /// Takes the distance of two changes; returns the frame that the second one ends.
    fn change(&mut self, distance: u32) -> Option<(FrameBits, Direction)> {
        let bit = match &mut self.bit {
            BitLength::Measuring { longest, changes } => {
                *changes += 1;
                // The first distance begins anywhere.
                *longest = if *changes == 1 { 0 } else { distance.max(*longest) };
                if *changes > CHANGES_TO_MEASURE {
                    self.bit = BitLength::Known(f64::from(*longest));
                }
                return None;
            }
            BitLength::Known(bit) => bit,
        };
        let relative = f64::from(distance) / *bit;
        if !(SHORTEST..LONGEST).contains(&relative) {
            self.lose();
            return None;
        }
        let is_long = relative >= BOUNDARY;
        let (whole, is_one) = match (self.half.take(), is_long) {
            (None, true) => (distance, false),
            (None, false) => {
                self.half = Some(distance);
                return None;
            }
            (Some(first), false) => (first + distance, true),
            (Some(_), true) => {
                // A half without its other: the bits before were read across their boundaries.
                self.window.clear();
                (distance, false)
            }
        };
        *bit += (f64::from(whole) - *bit) * WEIGHT;
        self.window.push(is_one)
    }

    /// Begins again.
    fn lose(&mut self) {
        self.bit = BitLength::Measuring { longest: 0, changes: 0 };
        self.half = None;
        self.window.clear();
    }
}
