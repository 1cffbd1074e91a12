//! Prints how fast the operations are on this machine, next to a plain `memcpy` of the same block.
//!
//! `cargo run --release -p consort-dsp --example throughput`. The figures are gigabytes per second
//! of `f32` samples that one thread produced (or, for encoding, consumed), the best of several
//! runs. Blocks are as short as cycles are, and stay in the cache. The last table converts all
//! channels of a large interface, which do not fit into it.

use std::hint::black_box;
use std::time::Instant;

use consort_dsp::{self as dsp, Format, LANES, PeerSamples};

const RUNS: usize = 15;
const BYTES_PER_RUN: usize = 64 << 20;

fn main() {
    dsp::detect_processor();
    for frames in [64, 1024] {
        println!("{frames} frames, GB/s:");
        samples(frames);
        for format in Format::ALL {
            conversion(format, frames);
        }
        println!();
    }
    println!(
        "{CHANNELS} channels of {FRAMES} frames, from and to memory that no cache holds; the time relative to a memcpy of as many samples:"
    );
    many_channels();
}

fn samples(frames: usize) {
    let sources: [Vec<f32>; 4] = std::array::from_fn(|source| vec![source as f32 * 0.1; frames]);
    let peers = sources.each_ref().map(|source| PeerSamples::from_slice(source));
    let mut into = vec![0.0; frames];
    report("memcpy", frames, || black_box(&mut into[..]).copy_from_slice(black_box(&sources[0])));
    report("copy", frames, || dsp::copy(black_box(peers[0]), black_box(&mut into)));
    report("mix of 2", frames, || dsp::mix(black_box(&peers[..2]), black_box(&mut into)));
    report("mix of 4", frames, || dsp::mix(black_box(&peers), black_box(&mut into)));
    report("gain", frames, || dsp::gain(black_box(&mut into), black_box(1.0)));
    report("scrub", frames, || dsp::scrub(black_box(&mut into)));
    report("peak", frames, || {
        black_box(dsp::peak(black_box(&into)));
    });
}

fn conversion(format: Format, frames: usize) {
    let mut samples: Vec<f32> = (0..frames).map(|frame| (frame as f32 * 0.1).sin()).collect();
    for channels in [1, 2, 8] {
        let mut bytes = vec![0; frames * channels * format.bytes_per_sample()];
        report(&format!("encode {format:?} 1/{channels}"), frames, || {
            dsp::encode(format, black_box(&samples), black_box(&mut bytes), 0, black_box(channels));
        });
        report(&format!("decode {format:?} 1/{channels}"), frames, || {
            dsp::decode(format, black_box(&bytes), black_box(&mut samples), 0, black_box(channels));
        });
    }
}

const CHANNELS: usize = 64;
const FRAMES: usize = 1024;
/// Blocks of all channels, one after the other: much more than the caches hold.
const BLOCKS: usize = 512;
/// Alignment of the memory of devices and ports.
const PAGE_BYTES: usize = 4096;

/// Values that start on a page boundary.
struct Paged<T> {
    values: Vec<T>,
    first: usize,
    count: usize,
}

impl<T: Copy> Paged<T> {
    fn new(value: T, count: usize) -> Self {
        let values = vec![value; count + PAGE_BYTES / size_of::<T>()];
        let first = values.as_ptr().align_offset(PAGE_BYTES);
        Self { values, first, count }
    }

    fn get(&mut self) -> &mut [T] {
        &mut self.values[self.first..][..self.count]
    }
}

/// Converts all channels of a large interface, and compares with a copy of as many samples.
fn many_channels() {
    const BLOCK: usize = CHANNELS * FRAMES;
    let (mut samples, mut into) =
        (Paged::new(0.5, BLOCKS * BLOCK), Paged::new(0.5, BLOCKS * BLOCK));
    let (samples, into) = (samples.get(), into.get());
    let memcpy = |into: &mut [f32]| {
        for (from, into) in samples.chunks(BLOCK).zip(into.chunks_mut(BLOCK)) {
            black_box(into).copy_from_slice(black_box(from));
        }
    };
    print_relative(&mut *into, memcpy, "memcpy, line by line", |into| {
        copy_side_by_side(samples, into)
    });
    for format in Format::ALL {
        let width = format.bytes_per_sample();
        let mut bytes = Paged::new(1, BLOCKS * BLOCK * width);
        let bytes = bytes.get();
        print_relative(&mut *into, memcpy, &format!("encode {format:?}"), |_| {
            for (from, into) in samples.chunks(FRAMES).zip(bytes.chunks_mut(FRAMES * width)) {
                dsp::encode(format, from, into, 0, black_box(1));
            }
        });
        print_relative(&mut *into, memcpy, &format!("decode {format:?}"), |into| {
            for (from, into) in bytes.chunks(FRAMES * width).zip(into.chunks_mut(FRAMES)) {
                dsp::decode(format, from, into, 0, black_box(1));
            }
        });
        print_relative(&mut *into, memcpy, &format!("interleave {format:?}"), |_| {
            for (from, into) in samples.chunks(BLOCK).zip(bytes.chunks_mut(BLOCK * width)) {
                for first in (0..CHANNELS).step_by(LANES) {
                    let planes =
                        std::array::from_fn(|lane| &from[(first + lane) * FRAMES..][..FRAMES]);
                    dsp::interleave(format, planes, into, first, black_box(CHANNELS));
                }
            }
        });
        print_relative(&mut *into, memcpy, &format!("deinterleave {format:?}"), |into| {
            for (from, into) in bytes.chunks(BLOCK * width).zip(into.chunks_mut(BLOCK)) {
                let mut planes = into.chunks_exact_mut(FRAMES);
                for first in (0..CHANNELS).step_by(LANES) {
                    let planes = std::array::from_fn(|_| planes.next().unwrap_or_default());
                    dsp::deinterleave(format, from, planes, first, black_box(CHANNELS));
                }
            }
        });
    }
}

/// Runs a copy and an operation in turn, and prints the median of the operation's time relative to
/// the copy just before it. The ratio is taken pairwise because memory that other programs use as
/// well is at times twice as slow.
fn print_relative(
    into: &mut [f32],
    copy: impl Fn(&mut [f32]),
    name: &str,
    mut operation: impl FnMut(&mut [f32]),
) {
    let mut ratios = [(); RUNS].map(|()| {
        let copied = seconds(|| copy(into));
        seconds(|| operation(into)) / copied
    });
    ratios.sort_by(f64::total_cmp);
    println!("  {name:<24} {:>6.2} ×", ratios[RUNS / 2]);
}

/// Copies in the order in which [`dsp::interleave`] reads: one cache line of a channel, then one of
/// the next, for eight channels. What this takes longer than a sequential copy is due to the
/// memory.
fn copy_side_by_side(from: &[f32], into: &mut [f32]) {
    const LINE: usize = 16;
    for (from, into) in from.chunks(LANES * FRAMES).zip(into.chunks_mut(LANES * FRAMES)) {
        for frame in (0..FRAMES).step_by(LINE) {
            for place in (frame..).step_by(FRAMES).take(LANES) {
                into[place..][..LINE].copy_from_slice(&from[place..][..LINE]);
            }
        }
    }
}

fn report(operation: &str, frames: usize, mut run: impl FnMut()) {
    let bytes = frames * size_of::<f32>();
    let repetitions = BYTES_PER_RUN / bytes;
    let fastest_seconds = fastest(|| (0..repetitions).for_each(|_| run()));
    let gigabytes = (repetitions * bytes) as f64 / 1e9;
    println!("  {operation:<24} {:>7.2}", gigabytes / fastest_seconds);
}

/// Returns the shortest of several runs, s.
fn fastest(mut run: impl FnMut()) -> f64 {
    (0..RUNS).map(|_| seconds(&mut run)).fold(f64::INFINITY, f64::min)
}

fn seconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}
