//! Resampling point by point, for rates that have no short block in common, and for programs that
//! cannot wait for one.
//!
//! An output frame is a sum of the input frames around it, weighted by a windowed sinc around its
//! exact position, which is a fraction of whole numbers. (J. O. Smith, "Digital Audio Resampling",
//! <https://ccrma.stanford.edu/~jos/resample/>; the window is Kaiser's.)

use std::f64::consts::PI;

use super::{MAX_POSITION, Ratio, Resampler, bound};
use crate::planes::{Emit, Planes};
use crate::{Filter, PIECE_FRAMES};

/// Most filter phases for a frame of the lower rate. Usual rates have fewer places between two
/// frames, and a phase for each. With others, weights between two phases are interpolated linearly,
/// so what is wrong is below -120 dB.
const PHASES: u64 = 1024;
/// Weights that are added at a time. The order of a sum decides its last bits, so it is fixed.
const LANES: usize = 8;

/// Kaiser's parameter for 120 dB: `0.1102 (A - 8.7)`.
const BETA: f64 = 0.1102 * (120.0 - 8.7);
/// Width of the transition for 120 dB, in periods of the lower rate, times the filter's length:
/// `(A - 8) / (2.285 * 2 pi)`.
const TRANSITION: f64 = (120.0 - 8.0) / (2.285 * 2.0 * PI);

impl Filter {
    /// Returns half of the frames of the lower rate that it spans, if it is independent of blocks.
    const fn half_frames(self) -> u64 {
        match self {
            Self::Prompt => 64,
            Self::Short => 96,
            Self::Medium => 128,
            Self::Long => 256,
        }
    }
}

/// Resamples each frame by itself.
pub(super) struct Points {
    ratio: Ratio,
    /// Input frames that count before and after a point.
    half: usize,
    /// A row of `2 * half` weights for each phase, and one for the next frame's first.
    table: Vec<f32>,
    phases: u64,
    /// The weights of one output frame between two phases.
    weights: Vec<f32>,
    /// The input around the next output frame: `filled` frames.
    input: Planes,
    filled: usize,
    /// Where the weights of the next output frame begin in `input`; or beyond it.
    offset: usize,
    /// How far the next output frame is behind an input frame, in parts of `ratio.output`.
    fraction: u64,
    output: Planes,
    /// Input frames up to the end of what is there.
    taken: u64,
    /// Position of the next output frame.
    position: u64,
}

impl Points {
    /// Returns a resampler of `channels` channels. Allocates.
    pub(super) fn new(channels: usize, ratio: Ratio, filter: Filter) -> Self {
        // A frame of the lower rate, in frames of the input.
        let stretch = (ratio.input as f64 / ratio.output as f64).max(1.0);
        let half = (filter.half_frames() as f64 * stretch).ceil() as usize;
        let half = half.next_multiple_of(LANES / 2);
        let phases = ((PHASES as f64 / stretch).ceil() as u64).clamp(1, ratio.output);
        let mut points = Self {
            ratio,
            half,
            table: table(half, phases, stretch),
            phases,
            weights: vec![0.0; 2 * half],
            input: Planes::new(channels, 2 * half + PIECE_FRAMES),
            filled: 0,
            offset: 0,
            fraction: 0,
            output: Planes::new(channels, PIECE_FRAMES),
            taken: 0,
            position: 0,
        };
        points.start_at(0);
        points
    }

    /// Returns the input frame at or before an output frame, and how far that is behind it, in
    /// parts of `ratio.output`.
    fn place(&self, position: u64) -> (u64, u64) {
        let exact = u128::from(position) * u128::from(self.ratio.input);
        let output = u128::from(self.ratio.output);
        (u64::try_from(exact / output).unwrap_or(u64::MAX), (exact % output) as u64)
    }

    /// Takes frames, as many as there is room for, and passes on what lies before `end`.
    fn take(&mut self, planes: &[&[f32]], first: usize, end: u64, emit: Emit<'_>) -> usize {
        let frames = planes.first().map_or(0, |plane| plane.len()) - first;
        let count = (self.input.frames() - self.filled).min(frames);
        for (room, plane) in self.input.iter_mut().zip(planes) {
            let room = &mut room[self.filled..][..count];
            room.copy_from_slice(&plane[first..][..count]);
            bound(room);
        }
        self.taken += count as u64;
        self.extend(count, end, emit);
        count
    }

    /// Passes on what new frames of input make possible, and makes room.
    fn extend(&mut self, count: usize, end: u64, emit: Emit<'_>) {
        self.filled += count;
        let mut made = 0;
        while self.position < end && self.offset + 2 * self.half <= self.filled {
            self.make(made);
            made += 1;
            self.position += 1;
            self.fraction += self.ratio.input;
            self.offset += (self.fraction / self.ratio.output) as usize;
            self.fraction %= self.ratio.output;
            if made == self.output.frames() {
                self.output.emit(0, made, emit);
                made = 0;
            }
        }
        if made > 0 {
            self.output.emit(0, made, emit);
        }
        let done = self.offset.min(self.filled);
        for plane in self.input.iter_mut() {
            plane.copy_within(done..self.filled, 0);
        }
        (self.filled, self.offset) = (self.filled - done, self.offset - done);
    }

    /// Makes one output frame of each channel.
    fn make(&mut self, at: usize) {
        let phase = self.fraction * self.phases;
        let row = (phase / self.ratio.output) as usize;
        let part = (phase % self.ratio.output) as f32 / self.ratio.output as f32;
        let taps = 2 * self.half;
        let (low, high) = self.table[row * taps..][..2 * taps].split_at(taps);
        let weights = if part == 0.0 {
            low
        } else {
            for (weight, (low, high)) in self.weights.iter_mut().zip(low.iter().zip(high)) {
                *weight = low + part * (high - low);
            }
            &self.weights
        };
        for (output, input) in self.output.iter_mut().zip(self.input.iter()) {
            output[at] = sum(weights, &input[self.offset..][..taps]);
        }
    }
}

impl Resampler for Points {
    fn position(&self) -> u64 {
        self.position
    }

    fn held_frames(&self) -> u64 {
        self.ratio.output_frames(self.taken).saturating_sub(self.position)
    }

    /// The half of the filter that lies after a point.
    fn latency_frames(&self) -> u64 {
        self.ratio.output_frames(self.half as u64)
    }

    fn most_input(&self, frames: u64) -> u64 {
        self.fewest_input(frames.saturating_add(1)).saturating_sub(1)
    }

    fn fewest_input(&self, frames: u64) -> u64 {
        if frames == 0 {
            return 0;
        }
        let (last, _) = self.place(self.position.saturating_add(frames - 1));
        last.saturating_add(self.half as u64 + 1).saturating_sub(self.taken)
    }

    fn start_at(&mut self, position: u64) -> u64 {
        self.position = position.min(MAX_POSITION);
        let (place, fraction) = self.place(self.position);
        self.fraction = fraction;
        let before = self.half as u64 - 1;
        self.taken = place.saturating_sub(before);
        // Before the beginning is silence.
        self.filled = before.saturating_sub(place) as usize;
        self.offset = 0;
        for plane in self.input.iter_mut() {
            plane[..self.filled].fill(0.0);
        }
        self.taken
    }

    fn push(&mut self, planes: &[&[f32]], emit: Emit<'_>) {
        let frames = planes.first().map_or(0, |plane| plane.len());
        let mut first = 0;
        while first < frames {
            first += self.take(planes, first, u64::MAX, emit);
        }
    }

    fn flush(&mut self, emit: Emit<'_>) {
        let end = self.ratio.output_frames(self.taken);
        while self.position < end {
            for plane in self.input.iter_mut() {
                plane[self.filled..].fill(0.0);
            }
            self.extend(self.input.frames() - self.filled, end, emit);
        }
        self.start_at(0);
    }
}

impl std::fmt::Debug for Points {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Points")
            .field("ratio", &self.ratio)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// Returns the sum of products, added in a fixed order.
fn sum(weights: &[f32], samples: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let chunks = weights.as_chunks::<LANES>().0.iter().zip(samples.as_chunks::<LANES>().0);
    for (weights, samples) in chunks {
        for (sum, (weight, sample)) in sums.iter_mut().zip(weights.iter().zip(samples)) {
            *sum += weight * sample;
        }
    }
    sums.iter().sum()
}

/// Returns the weights of each phase. Each row sums up to 1.
fn table(half: usize, phases: u64, stretch: f64) -> Vec<f32> {
    let taps = 2 * half;
    // The stop band begins at half of the lower rate.
    let cutoff = 0.5 - TRANSITION / (taps as f64 / stretch) / 2.0;
    let step = 2.0 * PI * cutoff / stretch;
    // Each sine by those of its tap and of its point: there are a hundred thousands of them, and a
    // process that serves many programs makes a table for one.
    let taps_at: Vec<(f64, f64)> = (0..taps).map(|tap| (step * tap as f64).sin_cos()).collect();
    let mut table = Vec::with_capacity((phases as usize + 1) * taps);
    let mut row = vec![0.0; taps];
    for phase in 0..=phases {
        let point = (half - 1) as f64 + phase as f64 / phases as f64;
        let (point_sin, point_cos) = (step * point).sin_cos();
        let places: Vec<f64> = (0..taps).map(|tap| tap as f64 - point).collect();
        for (frames, window) in places.as_chunks().0.iter().zip(row.as_chunks_mut().0) {
            *window = kaiser(frames.map(|frames| frames / half as f64));
        }
        for ((frames, value), (tap_sin, tap_cos)) in places.iter().zip(&mut row).zip(&taps_at) {
            let sine = tap_sin * point_cos - tap_cos * point_sin;
            *value *= if *frames == 0.0 { 1.0 } else { sine / (step * frames) };
        }
        let total: f64 = row.iter().sum();
        table.extend(row.iter().map(|value| (value / total) as f32));
    }
    table
}

/// Kaiser's window from -1 to 1, not normalised: the modified Bessel function of the first kind and
/// order 0 at `BETA * sqrt(1 - place^2)`, by its power series, at several places side by side.
fn kaiser(places: [f64; LANES]) -> [f64; LANES] {
    let inside = places.map(|place| 1.0 - place * place);
    let mut sums = [0.0; LANES];
    for term in SERIES.iter().rev() {
        for (sum, inside) in sums.iter_mut().zip(&inside) {
            *sum = *sum * inside + term;
        }
    }
    std::array::from_fn(|lane| if inside[lane] > 0.0 { sums[lane] } else { 0.0 })
}

/// Terms of the series: the next one is less than 1e-15 of the sum.
const TERMS: usize = 30;
/// The factor of each power of `1 - place^2`.
const SERIES: [f64; TERMS] = {
    let mut series = [1.0; TERMS];
    let mut number = 1;
    while number < TERMS {
        series[number] = series[number - 1] * (BETA * BETA / 4.0) / (number * number) as f64;
        number += 1;
    }
    series
};
