//! The far side of the loopback card: what comes out there, and what goes in.

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Program, Server};

/// The number that `probe source` puts into each frame, from a sample of it; `None`: silence.
fn number(sample: f64) -> Option<i64> {
    (sample != 0.0).then(|| (sample * 2_097_152.0).round() as i64 - 1)
}

/// Records what comes out of the loopback card for this many seconds; the samples of channel 0.
pub fn recorded(server: &Server, format: &str, rate: &str, seconds: u32) -> Vec<f64> {
    recorded_of(server, 2, format, rate, seconds)
}

/// Records what comes out of a loopback card that runs with this many channels.
pub fn recorded_of(
    server: &Server,
    channels: usize,
    format: &str,
    rate: &str,
    seconds: u32,
) -> Vec<f64> {
    let count = channels.to_string();
    let file = server.directory().join("far.raw");
    let path = file.to_string_lossy().into_owned();
    let arguments =
        ["-q", "-D", "hw:1,1", "-t", "raw", "-f", format, "-r", rate, "-c", &count, "-d"];
    super::run("arecord", &[&arguments[..], &[&seconds.to_string(), &path]].concat())
        .expect_success();
    samples(&file, channels, format)
}

/// A recording of both channels of the loopback card, which goes on meanwhile.
pub struct Recording {
    program: Program,
    file: PathBuf,
}

/// Begins to record what comes out of the loopback card for this many seconds.
pub fn record(server: &Server, seconds: u32) -> Recording {
    let file = server.directory().join("far.raw");
    let mut command = Command::new("arecord");
    command.args(["-q", "-D", "hw:1,1", "-t", "raw", "-f", "FLOAT_LE", "-r", "48000", "-c", "2"]);
    command.args(["-d", &seconds.to_string()]).arg(&file);
    Recording { program: Program::start(command), file }
}

impl Recording {
    /// Returns the samples of the left and the right channel, once it has ended.
    pub fn finish(self) -> [Vec<f32>; 2] {
        self.program.finish().expect_success();
        channels(&self.file)
    }
}

/// Returns the two channels of a file of raw floating point samples.
pub fn channels(file: &Path) -> [Vec<f32>; 2] {
    let bytes = std::fs::read(file).expect("a recording");
    let sample = |frame: &[u8], at: usize| {
        f32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
    };
    [0, 4].map(|at| bytes.chunks_exact(8).map(|frame| sample(frame, at)).collect())
}

fn samples(file: &Path, channels: usize, format: &str) -> Vec<f64> {
    let bytes = std::fs::read(file).expect("a recording");
    let width = match format {
        "S16_LE" | "S16_BE" => 2,
        "S24_3LE" | "S24_3BE" => 3,
        _ => 4,
    };
    // Written independently of `dsp`: integers from their bytes, most significant first.
    let decode = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        if format.ends_with("LE") {
            bytes.reverse();
        }
        if format.starts_with("FLOAT") {
            return f64::from(f32::from_be_bytes(bytes.try_into().expect("four bytes")));
        }
        if format.starts_with("S24_LE") || format.starts_with("S24_BE") {
            bytes.remove(0);
        }
        let scale = 2.0_f64.powi(8 * i32::try_from(bytes.len()).expect("few") - 1);
        let unsigned = bytes.iter().fold(0_i64, |value, byte| value << 8 | i64::from(*byte));
        let limit = scale as i64;
        (if unsigned >= limit { unsigned - 2 * limit } else { unsigned }) as f64 / scale
    };
    bytes.chunks_exact(channels * width).map(|frame| decode(&frame[..width])).collect()
}

/// Asserts that the samples, from the first that is not silent, are the numbers of at least this
/// many consecutive frames. `step`: by how much a format's smallest step is coarser than a number.
#[track_caller]
pub fn demand_consecutive(samples: &[f64], at_least: usize, step: i64) {
    let begin = samples.iter().position(|sample| *sample != 0.0).expect("something is heard");
    let heard = &samples[begin..];
    assert!(heard.len() >= at_least, "only {} frames of {at_least}", heard.len());
    // Where numbers wrap around, or are too small for the format, nothing can be checked.
    let first = number(heard[step as usize]).expect("a number") - step;
    for (index, sample) in heard.iter().enumerate() {
        let expected = (first + i64::try_from(index).expect("few")).rem_euclid(1 << 20);
        let found = number(*sample).unwrap_or(-1);
        let distance = (found - expected).abs();
        let wrapped = distance.min((1 << 20) - distance);
        assert!(wrapped <= step, "frame {index}: {found} instead of {expected}");
    }
}

/// Where the numbers of consecutive frames are interrupted.
#[derive(Debug)]
pub struct Gap {
    /// The first frame that is not the next one.
    pub at: usize,
    /// Silent frames from there on.
    pub silent: usize,
    /// Frames of the program that are missing.
    pub missing: i64,
}

/// Returns the gaps between numbers, in their order.
pub fn gaps(samples: &[f32]) -> Vec<Gap> {
    let numbers = samples.iter().enumerate();
    let numbers: Vec<(usize, i64)> =
        numbers.filter_map(|(at, sample)| Some((at, number((*sample).into())?))).collect();
    let between = numbers.windows(2).map(|pair| {
        let [(before, last), (after, next)] = [pair[0], pair[1]];
        let missing = (next - last - 1).rem_euclid(1 << 20);
        Gap { at: before + 1, silent: after - before - 1, missing }
    });
    between.filter(|gap| gap.silent > 0 || gap.missing > 0).collect()
}

/// Plays numbered frames into the loopback card.
pub fn play_numbers(server: &Server, frames: u32) -> Program {
    let file = server.directory().join("numbers.raw");
    let bytes: Vec<u8> = (0..frames)
        .flat_map(|frame| {
            let sample = ((frame & 0xf_ffff) + 1) as f32 / 2_097_152.0;
            [sample.to_le_bytes(), (-sample).to_le_bytes()].concat()
        })
        .collect();
    std::fs::write(&file, bytes).expect("a file");
    let mut command = Command::new("aplay");
    command
        .args(["-q", "-D", "hw:1,1", "-t", "raw", "-f", "FLOAT_LE", "-r", "48000", "-c", "2"])
        .arg(&file);
    Program::start(command)
}
