//! The file driver: plays a sound file into the capture ports and records the playback ports.
//!
//! The driver thread only moves frames between ports and rings; one thread per file does the rest.

mod clock;
mod error;
mod input;
mod output;
mod ring;
#[cfg(test)]
pub(crate) mod tests;
mod thread;

pub use error::FileDriverError;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::limits::{QUANTUM_FRAMES, SAMPLE_RATE_HZ};
use rt::shm::CycleInfo;
use soundfile::{Reader, Writer};

use self::clock::Clock;
use self::input::Input;
pub(crate) use self::output::Output;
pub(crate) use self::thread::ring_poll;
use crate::{Capture, Channels, Driver, Pacing, Playback, Wake, silence};

const DEFAULT_SAMPLE_RATE_HZ: u32 = 48_000;
const DEFAULT_PLAYBACK_CHANNELS: u32 = 2;

/// Time limit for a disk: for the first frames, for more of them if none may be lost, or for the
/// last.
const DISK_LIMIT_NS: u64 = 30_000_000_000;
/// Interval at which the rings are polled meanwhile.
const DISK_POLL_NS: u64 = 200_000;
/// Longest pause between two cycles before the gate opens, and so the longest that a client may
/// have to wait.
const CLOSED_GATE_REST_NS: u64 = 10_000_000;

/// What a file driver plays and records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOptions {
    /// The file that the capture ports play: WAV, FLAC or another format of libsndfile. `None`:
    /// there are no capture ports.
    pub input: Option<PathBuf>,
    /// The file to which the playback ports are recorded: a WAV, which replaces an existing file.
    pub output: Option<PathBuf>,
    /// Sample rate, Hz; `None`: the input's, or 48000.
    pub sample_rate_hz: Option<u32>,
    /// Playback ports; `None`: as many as the input has channels, or 2.
    pub playback_channels: Option<u32>,
    /// Whether cycles run in real time, or without pauses and without losing a frame.
    pub pacing: Pacing,
    /// Frames for which cycles continue and are recorded after the end of the input: room for
    /// reverberation.
    pub tail_frames: u32,
}

/// Plays and records files, once.
///
/// It begins with the first cycle that is read after its [gate](Self::gate) has opened; capture
/// ports are silent before. Input and output are aligned: the first frame of the output is what the
/// graph made of the first frame of the input. The driver ends when the input has ended, the tail
/// has passed, and the output of both has been written; without an input, it runs until it is
/// stopped.
///
/// In real time a disk that is too slow costs frames: silence inside the input, after which no
/// frame is skipped, and gaps in the output. [`summary`](Self::summary) counts them.
#[derive(Debug)]
pub struct FileDriver {
    input: Option<Input>,
    output: Option<Output>,
    channels: Channels,
    sample_rate_hz: u32,
    tail_frames: u32,
    description: String,
    gate: Arc<AtomicBool>,
    /// The gate was open when a cycle was read.
    has_begun: bool,
    clock: Clock,
    quantum: u32,
    /// Frames whose output has been written since the start.
    passed_frames: u64,
    /// The driver ended because a disk did not answer.
    gave_up: bool,
}

impl FileDriver {
    /// Opens the files and starts to read ahead. Not for the driver thread.
    ///
    /// # Errors
    /// [`FileDriverError`]. The output is not touched if the input or an option is at fault.
    pub fn open(options: FileOptions) -> Result<Self, FileDriverError> {
        if options.input.is_none() && options.output.is_none() {
            return Err(FileDriverError::NoFile);
        }
        let description = description(&options);
        let reader = options.input.as_ref().map(Reader::open).transpose()?;
        let sample_rate_hz = sample_rate_hz(&options, reader.as_ref())?;
        // A reader has at most 1024 channels.
        let capture = reader.as_ref().map_or(0, |reader| reader.channels() as u32);
        let default_playback = if capture > 0 { capture } else { DEFAULT_PLAYBACK_CHANNELS };
        let channels = Channels {
            capture,
            playback: options.playback_channels.unwrap_or(default_playback),
            monitors: 0,
        };
        if let (Some(input), Some(output)) = (&options.input, &options.output)
            && is_same_file(input, output)
        {
            return Err(FileDriverError::SameFile { path: output.clone() });
        }
        let poll = thread::ring_poll(options.pacing);
        let output = options.output.map(|path| {
            // A count that does not fit is refused like the largest one that does.
            let count = u16::try_from(channels.playback).unwrap_or(u16::MAX);
            let writer = Writer::create(&path, count, sample_rate_hz)?;
            Output::start(path, writer, usize::from(count), sample_rate_hz, poll)
        });
        let input =
            options.input.zip(reader).map(|(path, reader)| Input::start(path, reader, poll));
        Ok(Self {
            input: input.transpose()?,
            output: output.transpose()?,
            channels,
            sample_rate_hz,
            tail_frames: options.tail_frames,
            description,
            gate: Arc::new(AtomicBool::new(false)),
            has_begun: false,
            clock: Clock::new(options.pacing, sample_rate_hz),
            quantum: 0,
            passed_frames: 0,
            gave_up: false,
        })
    }

    /// Returns the gate: playing and recording begin when `true` is stored. Later values have no
    /// effect.
    #[must_use]
    pub fn gate(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gate)
    }

    /// Returns what was played and recorded and what went wrong, as sentences; errors only after
    /// [`stop`](Driver::stop). Not for the driver thread while it runs cycles.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut lines = self.input.as_ref().map_or_else(Vec::new, Input::summary);
        lines.extend(self.output.as_ref().map_or_else(Vec::new, Output::summary));
        if self.gave_up {
            let seconds = DISK_LIMIT_NS / 1_000_000_000;
            lines.push(format!("ended early: a disk did not answer for {seconds} s"));
        }
        lines.join("; ")
    }

    /// Returns the frames after which everything has been played and recorded, as far as that is
    /// known.
    fn end_frame(&self) -> u64 {
        match &self.input {
            Some(input) if input.has_ended() => {
                input.delivered_frames() + u64::from(self.tail_frames)
            }
            _ => u64::MAX,
        }
    }

    fn is_ready(&self) -> bool {
        self.input.as_ref().is_none_or(Input::is_ready)
            && self.output.as_ref().is_none_or(Output::is_ready)
    }

    /// Waits until the files can serve a cycle of any length; returns false if a disk takes too
    /// long.
    fn wait_for_files(&self) -> bool {
        let deadline_ns = sys::clock::now_ns().saturating_add(DISK_LIMIT_NS);
        while !self.is_ready() {
            let now_ns = sys::clock::now_ns();
            if now_ns >= deadline_ns {
                return false;
            }
            sys::clock::sleep_until(now_ns + DISK_POLL_NS);
        }
        true
    }

    /// Pauses before the gate opens: cycles without pauses would only keep clients from connecting.
    fn rest_before_the_gate(&self) {
        let period_ns = CycleInfo::nominal_period_ns(self.quantum, self.sample_rate_hz) as u64;
        sys::clock::sleep_until(sys::clock::now_ns() + period_ns.min(CLOSED_GATE_REST_NS));
    }
}

impl Driver for FileDriver {
    fn description(&self) -> String {
        self.description.clone()
    }

    fn channels(&self) -> Channels {
        self.channels.clone()
    }

    fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    fn pacing(&self) -> Pacing {
        self.clock.pacing()
    }

    fn start(&mut self, quantum: u32) -> Result<(), String> {
        if !QUANTUM_FRAMES.contains(&quantum) {
            let (least, most) = (QUANTUM_FRAMES.start(), QUANTUM_FRAMES.end());
            return Err(format!(
                "a quantum of {quantum} frames is out of range: {least} to {most}"
            ));
        }
        if !self.wait_for_files() {
            return Err(format!("{}: the disk does not answer", self.description));
        }
        self.quantum = quantum;
        self.clock.start(quantum)
    }

    fn wait(&mut self) -> Wake {
        if self.has_begun && self.passed_frames >= self.end_frame() {
            return Wake::End;
        }
        if self.pacing() == Pacing::WhenDone {
            if !self.gate.load(Ordering::Relaxed) {
                self.rest_before_the_gate();
            }
            if !self.wait_for_files() {
                self.gave_up = true;
                return Wake::End;
            }
        }
        self.clock.wait()
    }

    fn next_due_ns(&self) -> u64 {
        self.clock.next_due_ns()
    }

    fn set_quantum(&mut self, quantum: u32) {
        self.quantum = quantum;
        self.clock.set_quantum(quantum);
    }

    fn resume(&mut self) {
        self.clock.resume();
    }

    fn read(&mut self, capture: &mut dyn Capture) {
        // Relaxed: the gate does not order other memory.
        self.has_begun |= self.gate.load(Ordering::Relaxed);
        match &mut self.input {
            Some(input) if self.has_begun => {
                input.play(self.quantum, self.channels.capture, capture)
            }
            _ => silence(self.channels.capture, capture),
        }
    }

    fn write(&mut self, frames: u32, playback: &mut dyn Playback) {
        // Only a cycle that was read has begun, so the first write after it belongs to that cycle,
        // whether it is called in the same cycle or in the next.
        if !self.has_begun {
            return;
        }
        let left = self.end_frame().saturating_sub(self.passed_frames);
        let kept = u32::try_from(left).unwrap_or(u32::MAX).min(frames);
        if let Some(output) = &mut self.output {
            output.record(frames, kept, playback);
        }
        self.passed_frames += u64::from(kept);
    }

    fn report(&self) -> Option<String> {
        Some(self.summary())
    }

    fn stop(&mut self) {
        let deadline_ns = sys::clock::now_ns().saturating_add(DISK_LIMIT_NS);
        if let Some(input) = &mut self.input {
            input.abandon();
        }
        if let Some(output) = &mut self.output {
            output.abandon();
            output.join_until(deadline_ns);
        }
        if let Some(input) = &mut self.input {
            input.join_until(deadline_ns);
        }
    }
}

impl Drop for FileDriver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns "file in.wav → out.wav", without the part that is missing.
fn description(options: &FileOptions) -> String {
    let input = options.input.iter().map(|path| format!(" {}", path.display()));
    let output = options.output.iter().map(|path| format!(" → {}", path.display()));
    std::iter::once("file".to_owned()).chain(input).chain(output).collect()
}

fn sample_rate_hz(options: &FileOptions, reader: Option<&Reader>) -> Result<u32, FileDriverError> {
    let file_hz = reader.map(Reader::sample_rate_hz);
    if let (Some(path), Some(file_hz), Some(asked_hz)) =
        (&options.input, file_hz, options.sample_rate_hz)
        && file_hz != asked_hz
    {
        return Err(FileDriverError::OtherSampleRate { path: path.clone(), file_hz, asked_hz });
    }
    let sample_rate_hz = file_hz.or(options.sample_rate_hz).unwrap_or(DEFAULT_SAMPLE_RATE_HZ);
    if !SAMPLE_RATE_HZ.contains(&sample_rate_hz) {
        return Err(FileDriverError::SampleRate { sample_rate_hz });
    }
    Ok(sample_rate_hz)
}

/// Returns whether both names lead to the same existing file.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|found| identity(other) == Some(found))
}
