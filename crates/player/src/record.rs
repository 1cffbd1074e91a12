//! The command line of `consort record`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Args;
use client::stream::{ConvertedReader, RecordOptions, RecordStream, StreamConnection};
use convert::{
    ChannelMap, MAX_CHANNELS, MAX_RATE_HZ, Mixing, Options, ProgramFormat, SampleFormat, Standard,
    StreamFormat,
};
use soundfile::{Encoding, Writer};
use sys::signals::{Signal, TerminationSignals};

use crate::command::{Quality, short_name};
use crate::progress::Level;
use crate::recording::Recording;
use crate::server::Server;

/// Record into a sound file
///
/// Records what the server's device captures, or with --monitor, everything that leaves it or
/// another device: each sample as it is heard. The file is a WAV of 32-bit floating point at the
/// device's rate, unless something else is chosen. What the device captures comes through ports of
/// the graph (consort record:input_FL): connect them with any others, and the file has what they
/// play. The recording goes on with another driver that plays streams. If the server dies, it goes
/// on with the next one, and says how many frames are missing. A terminal shows the time, and the
/// level of what is recorded. Ctrl-C ends the recording.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort record take.wav
  consort record --rate 44100 --format s16 --channels 1 speech.wav
  consort record --monitor --duration 60 heard.wav
  consort record --device null --monitor heard.wav
  consort record --device USB take.wav

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
    /// Record from this device: with --monitor, one that plays streams, as `consort device list`
    /// names it; else a further card, or any other client of the graph, as `consort ls` names it
    /// [default: the server's own]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The rate of the file, Hz [default: the device's]
    #[arg(long, value_name = "HZ", value_parser = cli::in_range(1_000..=MAX_RATE_HZ))]
    rate: Option<u32>,
    /// How the file stores samples: u8, alaw, ulaw, s16, s24, s32 or float32
    #[arg(long, value_name = "FORMAT", default_value = "float32", value_parser = encoding_named)]
    format: (SampleFormat, Encoding),
    /// Channels of the file, into which those of the device are mixed [default: all of them]
    #[arg(long, value_name = "N", value_parser = cli::in_range(1..=MOST_CHANNELS))]
    channels: Option<u32>,
    /// How another rate is resampled: a longer filter keeps more of the treble
    #[arg(long, value_name = "FILTER", default_value = "medium")]
    quality: Quality,
    /// How long the device may keep frames until they are written, ms: how often it wakes for them
    #[arg(long, value_name = "MS", default_value_t = 250, value_parser = cli::in_range(5..=2000))]
    latency: u32,
    /// How long to record, seconds [default: until Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = cli::in_range(1..=86_400 * 365))]
    duration: Option<u32>,
}

/// Channels of a stream, at most.
const MOST_CHANNELS: u32 = 32;
const _: () = assert!(MAX_CHANNELS == MOST_CHANNELS as usize);

/// The formats that a WAV file can have, by PulseAudio's names.
fn encoding_named(name: &str) -> Result<(SampleFormat, Encoding), String> {
    let other =
        || format!("a WAV file has no {name}: use u8, alaw, ulaw, s16, s24, s32 or float32");
    let format: SampleFormat = name.parse().map_err(|_| other())?;
    let encoding = match format {
        SampleFormat::U8 => Encoding::Unsigned8,
        SampleFormat::ALaw => Encoding::ALaw,
        SampleFormat::MuLaw => Encoding::MuLaw,
        SampleFormat::Linear(dsp::Format::S16Le) => Encoding::Signed16,
        SampleFormat::Linear(dsp::Format::S24PackedLe) => Encoding::Signed24,
        SampleFormat::Linear(dsp::Format::S32Le) => Encoding::Signed32,
        SampleFormat::Linear(dsp::Format::FloatLe) => Encoding::Float32,
        SampleFormat::Linear(_) => return Err(other()),
    };
    Ok((format, encoding))
}

impl Record {
    /// Records from the server `server`.
    ///
    /// # Errors
    /// A sentence about the file, or the server's refusal.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        // Before anything may start a thread: they inherit the block.
        let signals = TerminationSignals::block().context("cannot wait for signals")?;
        let connection = StreamConnection::open(Some(server))?;
        let (stream, from, options) = self.open(&connection)?;
        let (format, encoding) = self.format;
        let into = ProgramFormat {
            format,
            rate_hz: self.rate.unwrap_or(from.rate_hz),
            map: self.map(from.map)?,
        };
        let conversion = Options { mixing: Mixing::default(), filter: self.quality.into() };
        let reader = ConvertedReader::new(&from, &into, conversion)?;
        let channels = into.map.channels();
        let writer =
            Writer::create_in(&self.file, u16::try_from(channels)?, into.rate_hz, encoding)?;
        let most = self.duration.map(|seconds| u64::from(seconds) * u64::from(into.rate_hz));
        let level = Level::begin(&self.file, into.rate_hz, u32::try_from(channels)?, most);
        let mut server_of_stream = Server::new(connection, signals)?;
        if self.monitor {
            server_of_stream.watch_devices(server)?;
        }
        let elsewhere = Elsewhere { options, into, conversion, latency_ms: self.latency };
        let recorded = (stream, reader, elsewhere);
        let ended = Recording::new(recorded, server_of_stream, (writer, level), most).run()?;
        ensure!(
            ended.lost == 0,
            "{} frames are missing: the file could not be written in time",
            ended.lost
        );
        Ok(match ended.signal {
            None | Some(Signal::Interrupt) => ExitCode::SUCCESS,
            Some(Signal::Hangup) => ExitCode::from(129),
            Some(_) => ExitCode::from(143),
        })
    }

    /// The channels of the file: those of the stream, unless there are to be others.
    fn map(&self, stream: ChannelMap) -> anyhow::Result<ChannelMap> {
        let Some(channels) = self.channels.map(|channels| channels as usize) else {
            return Ok(stream);
        };
        if channels == stream.channels() {
            return Ok(stream);
        }
        ChannelMap::extended(Standard::WaveEx, channels)
            .with_context(|| format!("a file of {channels} channels: use another number"))
    }

    /// Opens the stream; returns what it records, and what it was opened with.
    fn open(&self, connection: &StreamConnection) -> anyhow::Result<Opened> {
        let client = self.device.as_deref().filter(|_| !self.monitor);
        let outputs = client.map_or_else(Vec::new, |name| connection.outputs_of(name));
        let device = match connection.device_named(self.device.as_deref()) {
            // The device that drives is a client as well.
            Ok(device) => device,
            Err(_) if !outputs.is_empty() => return self.open_ports(connection, outputs),
            Err(error) => return Err(self.explained(connection, error)),
        };
        let there = if self.monitor { device.channels } else { device.captured };
        if there == 0 && self.monitor {
            bail!("the device plays no streams that could be recorded");
        }
        ensure!(
            there > 0,
            "the device has no channels that can be recorded: --monitor records what leaves it"
        );
        let channels = there.min(MOST_CHANNELS);
        let options =
            self.options(self.device.clone(), (0..channels).collect(), device.sample_rate_hz);
        let stream = connection.record_reopening(options.clone())?;
        Ok((stream, stream_format(device.sample_rate_hz, channels as usize)?, options))
    }

    /// Opens a stream of what a client of the graph plays: a further card, or any other.
    fn open_ports(
        &self,
        connection: &StreamConnection,
        mut outputs: Vec<String>,
    ) -> anyhow::Result<Opened> {
        outputs.truncate(MAX_CHANNELS);
        let rate_hz = connection.device()?.sample_rate_hz;
        let options = self.options(None, Vec::new(), rate_hz);
        let stream = connection.record_ports(options.clone(), &outputs)?;
        Ok((stream, stream_format(rate_hz, outputs.len())?, options))
    }

    /// Says of a name that is no device of streams what else it may be.
    fn explained(&self, connection: &StreamConnection, error: client::Error) -> anyhow::Error {
        let error = anyhow::Error::new(error);
        let Some(name) = self.device.as_deref() else { return error };
        if self.monitor && !connection.outputs_of(name).is_empty() {
            return error.context(format!(
                "'{name}' is a client of the graph, and --monitor is for devices that play streams: \
                 without it, what '{name}' captures or plays is recorded"
            ));
        }
        if self.monitor {
            return error;
        }
        error.context(format!("'{name}' has no outputs in the graph (consort ls)"))
    }

    fn options(&self, device: Option<String>, channels: Vec<u32>, rate_hz: u32) -> RecordOptions {
        RecordOptions {
            program: "consort record".into(),
            name: short_name(&self.file),
            device,
            monitor: self.monitor,
            channels,
            interval_frames: interval_frames(rate_hz, self.latency),
            lets_sleep: false,
        }
    }
}

/// A stream, what it records, and what it was opened with.
type Opened = (RecordStream, StreamFormat, RecordOptions);

/// What a monitor needs to go on on a device that it does not fit as it is.
pub(crate) struct Elsewhere {
    options: RecordOptions,
    /// What the file has.
    into: ProgramFormat,
    conversion: Options,
    latency_ms: u32,
}

impl Elsewhere {
    /// Returns whether it is what leaves a device that is recorded.
    pub(crate) fn is_monitor(&self) -> bool {
        self.options.monitor
    }

    /// Opens a stream of what leaves the device of this name, or the one that drives. It holds;
    /// also returns its conversion.
    pub(crate) fn open(
        &self,
        connection: &StreamConnection,
        device: Option<&str>,
    ) -> anyhow::Result<(RecordStream, ConvertedReader)> {
        let there = connection.device_named(device)?;
        let (rate_hz, channels) = (there.sample_rate_hz, there.channels.min(MOST_CHANNELS));
        let from = stream_format(rate_hz, channels as usize)?;
        let reader = ConvertedReader::new(&from, &self.into, self.conversion)?;
        let options = RecordOptions {
            device: device.map(Into::into),
            channels: (0..channels).collect(),
            interval_frames: interval_frames(rate_hz, self.latency_ms),
            ..self.options.clone()
        };
        Ok((connection.record_reopening(options)?, reader))
    }
}

/// Returns how long the device may keep frames, frames, for a latency in ms.
fn interval_frames(rate_hz: u32, latency_ms: u32) -> u32 {
    let frames = u64::from(rate_hz) * u64::from(latency_ms) / 1000;
    u32::try_from(frames).unwrap_or(u32::MAX).max(1)
}

fn stream_format(rate_hz: u32, channels: usize) -> anyhow::Result<StreamFormat> {
    let map = ChannelMap::extended(Standard::Alsa, channels)
        .with_context(|| format!("{channels} channels cannot be recorded"))?;
    Ok(StreamFormat { rate_hz, map })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_that_a_wav_file_can_have() {
        for (name, expected) in [
            ("u8", Some(Encoding::Unsigned8)),
            ("s16", Some(Encoding::Signed16)),
            ("s24le", Some(Encoding::Signed24)),
            ("S32", Some(Encoding::Signed32)),
            ("float32", Some(Encoding::Float32)),
            ("ulaw", Some(Encoding::MuLaw)),
            ("s16be", None),
            ("s24-32", None),
            ("mp3", None),
        ] {
            let encoding = encoding_named(name);
            assert_eq!(encoding.as_ref().ok().map(|(_, encoding)| *encoding), expected, "{name}");
            let says = |error: String| error.contains("no ") && error.contains("use u8, alaw");
            assert!(encoding.is_ok() || encoding.is_err_and(says), "{name}");
        }
    }
}
