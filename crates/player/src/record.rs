//! The command line of `consort record`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Args;
use client::Error;
use client::stream::{RecordOptions, RecordStream, SamplesMut, StreamConnection, WishError};
use soundfile::Writer;
use sys::clock::now_ns;
use sys::signals::{Signal, TerminationSignals};

use crate::command::short_name;
use crate::playback::DEVICE_GONE;
use crate::progress::Level;
use crate::server::{Interruption, Server, Wait};

/// Record into a sound file
///
/// Records what the server's device captures, or with --monitor, everything that leaves it or
/// another device: each sample as it is heard. The file is a WAV of 32-bit floating point at the
/// device's rate. If the server dies, the recording goes on with the next one, and says how many
/// frames are missing. Ctrl-C ends the recording.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort record take.wav
  consort record --monitor --duration 60 heard.wav
  consort record --device null --monitor heard.wav

Exit codes:
  0         recorded, until its duration was over or Ctrl-C
  1         the file cannot be written, or the server refused it, or ended and was not replaced
  3         no server of that name is running
  129, 143  ended by SIGHUP or SIGTERM; the file is complete up to then")]
pub struct Record {
    /// The sound file, which is replaced
    file: PathBuf,
    /// Record what leaves the device instead of what it captures
    #[arg(long)]
    monitor: bool,
    /// Record from this device, as `consort device list` names it [default: the server's own]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// How long to record, seconds [default: until Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = cli::in_range(1..=86_400 * 365))]
    duration: Option<u32>,
}

/// Channels of a stream, at most.
const MOST_CHANNELS: u32 = 32;
/// Frames that are read at once.
const BLOCK_FRAMES: usize = 4096;
/// How often the device wakes for the recording, a part of a second.
const INTERVALS_PER_SECOND: u32 = 4;
/// The next look where the device does not say when there is more, ns.
const UNKNOWN_NS: u64 = 50_000_000;
/// How long after the device's wake-up its frames are there, ns.
const AFTER_WAKE_NS: u64 = 2_000_000;

impl Record {
    /// Records from the server `server`.
    ///
    /// # Errors
    /// A sentence about the file, or the server's refusal.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        // Before anything may start a thread: they inherit the block.
        let signals = TerminationSignals::block().context("cannot wait for signals")?;
        let connection = StreamConnection::open(Some(server))?;
        let device = connection.device_named(self.device.as_deref())?;
        let there = if self.monitor { device.channels } else { device.captured };
        let advice = if self.monitor { "" } else { ": --monitor records what leaves it" };
        ensure!(there > 0, "the device has no channels that can be recorded{advice}");
        let channels = there.min(MOST_CHANNELS);
        let stream = connection.record(RecordOptions {
            program: "consort record".into(),
            name: short_name(&self.file),
            device: self.device,
            monitor: self.monitor,
            channels: (0..channels).collect(),
            interval_frames: device.sample_rate_hz / INTERVALS_PER_SECOND,
            lets_sleep: false,
        })?;
        let rate_hz = device.sample_rate_hz;
        let mut writer = Writer::create(&self.file, u16::try_from(channels)?, rate_hz)?;
        let most = self.duration.map(|seconds| u64::from(seconds) * u64::from(rate_hz));
        let mut level = Level::begin(&self.file, rate_hz, channels, most);
        let mut recording = Recording {
            stream,
            server: Server::new(connection, signals)?,
            most,
            channels: channels as usize,
            gone_ms: 0,
        };
        let signal = recording.record(&mut writer, &mut level);
        level.end();
        recording.report_gap();
        let reader = recording.stream.reader();
        let lost = reader.lost() + reader.control().missed_frames();
        writer.finish()?;
        let signal = signal?;
        ensure!(lost == 0, "{lost} frames are missing: the file could not be written in time");
        Ok(match signal {
            None | Some(Signal::Interrupt) => ExitCode::SUCCESS,
            Some(Signal::Hangup) => ExitCode::from(129),
            Some(_) => ExitCode::from(143),
        })
    }
}

struct Recording {
    // Before the server: it ends first.
    stream: RecordStream,
    server: Server,
    /// Frames to record; `None`: until a signal.
    most: Option<u64>,
    channels: usize,
    /// How long there was no server, as long as that is not reported.
    gone_ms: u64,
}

impl Recording {
    /// Records until everything is there, or until a signal, which it returns.
    fn record(&mut self, writer: &mut Writer, level: &mut Level) -> anyhow::Result<Option<Signal>> {
        let mut interruption = match self.stream.run() {
            // The next one gets the wish.
            Err(WishError::Server(Error::ServerGone)) => Some(Interruption::ServerGone),
            run => run.map(|_| None)?,
        };
        loop {
            self.write(writer, level)?;
            match interruption {
                None => {}
                Some(Interruption::Signal(signal)) => return Ok(Some(signal)),
                Some(Interruption::ServerGone) => match self.server.await_next(&mut self.stream)? {
                    Wait::Returned { gone_ms } => self.gone_ms += gone_ms,
                    Wait::Signal(signal) => return Ok(Some(signal)),
                },
            }
            if self.most.is_some_and(|most| writer.frames() >= most) {
                return Ok(None);
            }
            if self.stream.reader().control().page().has_ended() {
                bail!(DEVICE_GONE);
            }
            if self.gone_ms > 0 && self.stream.reader_mut().unrecorded_frames().is_some() {
                level.end();
                self.report_gap();
            }
            interruption = self.server.sleep_until(self.next_look_ns())?;
            if let Some(Interruption::Signal(_)) = interruption {
                // What was heard by now.
                match self.stream.hold() {
                    Ok(_) | Err(WishError::Server(Error::ServerGone)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// Says how long there was no server, unless that was said before.
    fn report_gap(&mut self) {
        let gone_ms = std::mem::take(&mut self.gone_ms);
        if gone_ms > 0 {
            let frames = self.stream.reader_mut().unrecorded_frames();
            let missing = frames.map(|frames| format!(": {frames} frames are missing"));
            eprintln!(
                "consort: the server was gone for {gone_ms} ms{}",
                missing.unwrap_or_default()
            );
        }
    }

    fn next_look_ns(&self) -> u64 {
        let reader = self.stream.reader();
        let schedule = reader.control().page().schedule();
        let due = schedule.and_then(|schedule| schedule.due(reader.position()));
        let now_ns = now_ns();
        due.map_or(now_ns + UNKNOWN_NS, |due| due.at_ns.max(now_ns) + AFTER_WAKE_NS)
    }

    /// Writes what is there, as far as it is wanted.
    fn write(&mut self, writer: &mut Writer, level: &mut Level) -> anyhow::Result<()> {
        let mut planes = vec![vec![0.0; BLOCK_FRAMES]; self.channels];
        loop {
            let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(writer.frames()));
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK_FRAMES);
            let mut into: Vec<&mut [f32]> =
                planes.iter_mut().map(|plane| &mut plane[..wanted]).collect();
            let frames = self.stream.reader_mut().read(SamplesMut::Planar(&mut into));
            if frames == 0 {
                return Ok(());
            }
            let read: Vec<&[f32]> = planes.iter().map(|plane| &plane[..frames]).collect();
            writer.write(&read)?;
            level.show(&read, writer.frames());
        }
    }
}
