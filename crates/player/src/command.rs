//! The command line of `consort play`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use client::stream::{
    MAX_NAME_BYTES, PlaybackOptions, RingSamples, StreamConnection, StreamDevice,
};
use convert::{ChannelMap, Filter, MAX_CHANNELS, Standard, StreamFormat};
use sys::signals::TerminationSignals;

use crate::pacing::Pacing;
use crate::playback::{Ending, Playback};
use crate::server::Server;
use crate::source::Source;

/// Play a sound file
///
/// The file may have any format that libsndfile reads, any rate and any channels. It is played
/// beside the graph: the device renders it far ahead and sleeps, and so does this program, unless
/// another program needs short cycles. If the server dies, the file goes on with the next one where
/// it was. A terminal shows the time, and the level of what is heard. Ctrl-C fades out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort play song.flac
  consort play --latency 50 --quality prompt click.wav
  consort play --device null song.flac

Exit codes:
  0  the whole file was heard
  1  the file cannot be played, or the server refused it, or ended and was not replaced
  3  no server of that name is running
  129, 130, 143  ended by SIGHUP, SIGINT or SIGTERM")]
pub struct Play {
    /// The sound file
    file: PathBuf,
    /// Play on this device, as `consort device list` names it [default: the server's own]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// How long frames may take until they are heard, ms; from 200 on: how far ahead the device may
    /// render
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = cli::in_range(5..=2000))]
    latency: u32,
    /// How a file of another rate is resampled: a longer filter keeps more of the treble
    #[arg(long, value_name = "FILTER", default_value = "medium")]
    quality: Quality,
    /// Print at the end how long frames took from when they were written until they were heard
    #[arg(long)]
    report: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Quality {
    /// Up to 19 of 22.05 kHz; for short latencies
    Prompt,
    /// Up to 20 kHz
    Short,
    /// Up to 21 kHz
    Medium,
    /// Up to 21.75 kHz
    Long,
}

impl From<Quality> for Filter {
    fn from(quality: Quality) -> Self {
        match quality {
            Quality::Prompt => Self::Prompt,
            Quality::Short => Self::Short,
            Quality::Medium => Self::Medium,
            Quality::Long => Self::Long,
        }
    }
}

/// The real-time priority with which a short latency is kept: below everything of the graph.
const PRIORITY: u32 = 1;

impl Play {
    /// Plays the file on the server `server`.
    ///
    /// # Errors
    /// A sentence about the file, or the server's refusal.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        // Before anything may start a thread: they inherit the block.
        let signals = TerminationSignals::block().context("cannot wait for signals")?;
        let reader = soundfile::Reader::open(&self.file)?;
        let connection = StreamConnection::open(Some(server))?;
        let device = connection.device_named(self.device.as_deref())?;
        let format = stream_format(&device)?;
        let (rate_hz, channels) = (format.rate_hz, u32::try_from(format.map.channels())?);
        let source = Source::new(reader, &format, self.quality.into())?;
        let pacing = Pacing::new(Duration::from_millis(self.latency.into()));
        let options = PlaybackOptions {
            program: "consort play".into(),
            name: short_name(&self.file),
            device: self.device,
            channels: (0..channels).collect(),
            depth_frames: pacing.depth_frames(rate_hz),
            samples: RingSamples::Planes,
        };
        let stream = connection.play_reopening(options.clone(), 0)?;
        let mut server_of_stream = Server::new(connection, signals)?;
        server_of_stream.watch_devices(server)?;
        let mut playback =
            Playback::new(server_of_stream, (stream, options), source, pacing, rate_hz);
        if pacing.is_short() {
            // Without it, the latency has gaps on a busy machine.
            let _ = sys::thread::set_fifo(0, PRIORITY);
        }
        let ending = playback.run(&self.file)?;
        if self.report {
            cli::output::print(&format!("{}\n", playback.delays()))?;
        }
        Ok(match ending {
            Ending::Drained => ExitCode::SUCCESS,
            Ending::Signal(number) => ExitCode::from(128 + number),
            // It has ended only here.
            Ending::Moved => ExitCode::SUCCESS,
        })
    }
}

/// Returns what streams on a device are converted to.
pub(crate) fn stream_format(device: &StreamDevice) -> anyhow::Result<StreamFormat> {
    // A device that plays no streams says so when one is opened.
    let channels = device.channels.clamp(1, u32::try_from(MAX_CHANNELS)?);
    let map = ChannelMap::extended(Standard::Alsa, channels as usize);
    let map = map.with_context(|| format!("the device has {channels} channels"))?;
    Ok(StreamFormat { rate_hz: device.sample_rate_hz, map })
}

/// The name of a file, for users, as far as a stream may have it.
pub(crate) fn short_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let mut name: String = name.chars().filter(|character| !character.is_control()).collect();
    while name.len() > MAX_NAME_BYTES {
        name.pop();
    }
    if name.is_empty() { "file".into() } else { name }
}
