//! The driver as the server sees it, with real files and a graph that copies capture to playback.

mod endings;
mod opening;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use soundfile::{Reader, Writer};

use super::{FileDriver, FileOptions};
use crate::{Capture, Driver as _, Pacing, Playback, Wake};

const SAMPLE_RATE_HZ: u32 = 48_000;

/// The quantum of the cycle with a number.
type QuantumOfCycle = fn(u32) -> u32;

/// Capture or playback ports: a plane of samples each.
pub(crate) struct Ports {
    pub(crate) planes: Vec<Vec<f32>>,
}

impl Ports {
    /// Ports filled with samples that no test expects to hear.
    pub(crate) fn new(channels: usize, quantum: u32) -> Self {
        Self { planes: vec![vec![9.0; quantum as usize]; channels] }
    }
}

impl Capture for Ports {
    fn channel(&mut self, channel: u32) -> Option<&mut [f32]> {
        self.planes.get_mut(channel as usize).map(Vec::as_mut_slice)
    }
}

impl Playback for Ports {
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
        samples.copy_from_slice(&self.planes[channel as usize][..samples.len()]);
    }
}

/// Whether a cycle's output is written in the same cycle or in the next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Sync,
    Async,
}

/// Runs the driver to its end, at most `cycles` cycles: each of the quantum that `quantum` gives
/// for its number, in a graph that copies. Returns how many cycles there were.
fn run(driver: &mut FileDriver, mode: Mode, cycles: u32, quantum: impl Fn(u32) -> u32) -> u32 {
    let channels = driver.channels().capture.max(driver.channels().playback) as usize;
    driver.start(quantum(0)).unwrap();
    let mut before: Option<(u32, Ports)> = None;
    for cycle in 0..cycles {
        if driver.wait() == Wake::End {
            return cycle;
        }
        if let Some((frames, mut ports)) = before.take() {
            driver.write(frames, &mut ports);
        }
        driver.set_quantum(quantum(cycle));
        let mut ports = Ports::new(channels, quantum(cycle));
        driver.read(&mut ports);
        match mode {
            Mode::Sync => driver.write(quantum(cycle), &mut ports),
            Mode::Async => before = Some((quantum(cycle), ports)),
        }
    }
    cycles
}

/// Samples that are all different within a file.
fn samples(channels: usize, frames: usize) -> Vec<Vec<f32>> {
    let sample = |channel, frame| (frame * channels + channel + 1) as f32 / (1 << 24) as f32;
    (0..channels).map(|channel| (0..frames).map(|frame| sample(channel, frame)).collect()).collect()
}

fn write_file(path: &Path, planes: &[Vec<f32>]) {
    let mut writer = Writer::create(path, planes.len() as u16, SAMPLE_RATE_HZ).unwrap();
    writer.write(planes).unwrap();
    writer.finish().unwrap();
}

fn read_file(path: &Path) -> Vec<Vec<f32>> {
    let mut reader = Reader::open(path).unwrap();
    let frames = reader.frames().unwrap() as usize;
    let mut planes = vec![vec![0.0; frames]; reader.channels()];
    assert_eq!(reader.read(&mut planes).unwrap(), frames);
    planes
}

/// A directory with files of one test.
struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Options that play `in.wav` (made of `planes`) and record `out.wav` as fast as possible.
    fn options(&self, planes: &[Vec<f32>]) -> FileOptions {
        write_file(&self.path("in.wav"), planes);
        FileOptions {
            input: Some(self.path("in.wav")),
            output: Some(self.path("out.wav")),
            sample_rate_hz: None,
            playback_channels: None,
            pacing: Pacing::WhenDone,
            tail_frames: 0,
        }
    }

    fn recorded(&self) -> Vec<Vec<f32>> {
        read_file(&self.path("out.wav"))
    }
}

/// A driver whose gate is open.
fn open(options: FileOptions) -> FileDriver {
    let driver = FileDriver::open(options).unwrap();
    driver.gate().store(true, Ordering::Relaxed);
    driver
}

#[test]
fn a_graph_that_copies_records_exactly_the_input() {
    let cases: [(&str, usize, QuantumOfCycle); 10] = [
        ("single frames", 20_011, |_| 1),
        ("64", 20_011, |_| 64),
        ("333", 20_011, |_| 333),
        ("8192", 20_011, |_| 8192),
        ("a quantum that changes midway", 20_011, |cycle| if cycle < 20 { 64 } else { 1024 }),
        ("a quantum that changes each cycle", 100_003, |cycle| {
            [64, 1, 8192, 333][cycle as usize % 4]
        }),
        ("shorter than a quantum", 5, |_| 64),
        ("a whole number of quanta", 640, |_| 64),
        ("a whole number of blocks", 3 * 8192, |_| 8192),
        ("longer than the rings", 300_000, |_| 4096),
    ];
    for (name, frames, quantum) in cases {
        for mode in [Mode::Sync, Mode::Async] {
            let files = Files::new();
            let planes = samples(2, frames);
            let mut driver = open(files.options(&planes));
            let cycles = run(&mut driver, mode, u32::MAX, quantum);
            driver.stop();
            assert!(files.recorded() == planes, "{name}, {mode:?}: {}", driver.summary());
            let needed = (1..)
                .find(|n| (0..*n).map(|cycle| quantum(cycle) as usize).sum::<usize>() >= frames);
            assert_eq!(
                Some(cycles),
                needed.map(|n| n + u32::from(mode == Mode::Async)),
                "{name}, {mode:?}"
            );
        }
    }
}

#[test]
fn in_real_time_a_file_that_fits_into_the_ring_is_copied_exactly_too() {
    let files = Files::new();
    let planes = samples(2, 2000);
    let mut driver = open(FileOptions { pacing: Pacing::RealTime, ..files.options(&planes) });
    assert_eq!(driver.pacing(), Pacing::RealTime);
    run(&mut driver, Mode::Sync, u32::MAX, |_| 480);
    driver.stop();
    assert!(files.recorded() == planes);
    let (input, output) = (files.path("in.wav"), files.path("out.wav"));
    let expected = format!(
        "played 2000 frames of {}; recorded 2000 frames to {}",
        input.display(),
        output.display()
    );
    assert_eq!(driver.summary(), expected);
}

#[test]
fn nothing_is_played_or_recorded_before_the_gate_opens() {
    for mode in [Mode::Sync, Mode::Async] {
        let files = Files::new();
        let planes = samples(1, 100);
        let mut driver = FileDriver::open(files.options(&planes)).unwrap();
        assert_eq!(run(&mut driver, mode, 3, |_| 64), 3);
        let mut ports = Ports::new(1, 64);
        driver.read(&mut ports);
        assert_eq!(ports.planes, [[0.0; 64]]);

        driver.gate().store(true, Ordering::Relaxed);
        // The output of the cycle that was read before.
        driver.write(64, &mut ports);
        run(&mut driver, mode, u32::MAX, |_| 64);
        driver.stop();
        assert!(files.recorded() == planes, "{mode:?}");
    }
}

#[test]
fn more_playback_ports_than_the_input_has_channels_are_all_recorded() {
    let files = Files::new();
    let options = FileOptions { playback_channels: Some(3), ..files.options(&samples(1, 100)) };
    let mut driver = open(options);
    assert_eq!((driver.channels().capture, driver.channels().playback), (1, 3));
    run(&mut driver, Mode::Sync, u32::MAX, |_| 64);
    driver.stop();
    // The copying graph leaves the ports of the missing channels as they were.
    assert!(files.recorded() == [samples(1, 100).remove(0), vec![9.0; 100], vec![9.0; 100]]);
}

#[test]
fn samples_of_a_file_that_are_not_finite_are_played_as_silence() {
    let files = Files::new();
    let mut driver = open(files.options(&[vec![f32::NAN, 0.5, f32::INFINITY, -0.5]]));
    run(&mut driver, Mode::Sync, u32::MAX, |_| 4);
    driver.stop();
    assert_eq!(files.recorded(), [[0.0, 0.5, 0.0, -0.5]]);
}

#[test]
fn cycles_without_real_time_are_never_late() {
    let files = Files::new();
    let mut driver = open(files.options(&samples(1, 48_000)));
    driver.start(480).unwrap();
    let mut due = Vec::new();
    for quantum in [480, 960, 480, 480] {
        let Wake::Cycle { due_ns, xrun_us: None } = driver.wait() else {
            panic!("a cycle without an xrun")
        };
        driver.set_quantum(quantum);
        due.push(due_ns);
        assert_eq!(driver.next_due_ns(), u64::MAX / 2);
    }
    let steps: Vec<_> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps, [10_000_000, 20_000_000, 10_000_000]);
}
