//! Prints what conversions cost on this machine.
//!
//! `cargo run --release -p consort-convert --example conversion_cost`. The figures are milliseconds
//! of one thread for a second of stereo sound, the best of several runs, and how late the
//! conversion is.

use std::hint::black_box;
use std::time::Instant;

use convert::{
    Filter, Options, PlaybackConverter, ProgramFormat, RecordConverter, SampleFormat, StreamFormat,
};

const RUNS: usize = 15;
const SECONDS: usize = 10;
/// Frames that are pushed at once: 20 ms.
const BLOCKS_PER_SECOND: usize = 50;

fn main() {
    dsp::detect_processor();
    println!("a second of s16 stereo:");
    for (from_hz, to_hz) in
        [(48_000, 48_000), (44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (44_101, 48_000)]
    {
        for filter in [Filter::Prompt, Filter::Short, Filter::Medium, Filter::Long] {
            if from_hz == to_hz && filter != Filter::Prompt {
                continue;
            }
            measure(from_hz, to_hz, "stereo", filter);
        }
    }
    println!("a second of s16 5.1 to stereo:");
    measure(48_000, 48_000, "surround-51", Filter::Short);
    measure(44_100, 48_000, "surround-51", Filter::Medium);
}

fn measure(from_hz: u32, to_hz: u32, map: &str, filter: Filter) {
    let map = map.parse().expect("a map");
    let stereo = "stereo".parse().expect("a map");
    let format: SampleFormat = "s16le".parse().expect("a format");
    let options = Options { filter, ..Options::default() };
    let program = ProgramFormat { format, rate_hz: from_hz, map };
    let stream = StreamFormat { rate_hz: to_hz, map: stereo };
    let mut playback = PlaybackConverter::new(&program, &stream, options).expect("usual rates");
    let block = from_hz as usize / BLOCKS_PER_SECOND * map.channels();
    let samples = (0..block).map(|at| ((at as f32 * 0.05).sin() * 20_000.0) as i16);
    let bytes: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let to_stream = best(|| {
        playback.push(black_box(&bytes), |planes| {
            black_box(planes);
        });
    });

    let back = ProgramFormat { rate_hz: to_hz, map: stereo, ..program };
    let from = StreamFormat { rate_hz: from_hz, map };
    let mut record = RecordConverter::new(&from, &back, options).expect("usual rates");
    let plane = vec![0.25; from_hz as usize / BLOCKS_PER_SECOND];
    let planes = vec![&plane[..]; map.channels()];
    let from_stream = best(|| {
        record.push(black_box(&planes), |bytes| {
            black_box(bytes);
        });
    });
    let latency_ms = playback.latency_frames() as f64 * 1e3 / f64::from(to_hz);
    println!(
        "{from_hz:>6} -> {to_hz} Hz {:8} playback {to_stream:.3} ms, \
         recording {from_stream:.3} ms, latency {latency_ms:.1} ms",
        if from_hz == to_hz { String::new() } else { format!("{filter:?}") }
    );
}

/// Returns the milliseconds for a second of blocks.
fn best(mut block: impl FnMut()) -> f64 {
    let run = |block: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..SECONDS * BLOCKS_PER_SECOND {
            block();
        }
        start.elapsed().as_secs_f64() * 1e3 / SECONDS as f64
    };
    (0..RUNS).map(|_| run(&mut block)).fold(f64::INFINITY, f64::min)
}
