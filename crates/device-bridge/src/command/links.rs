//! Links between devices: their options, and the process that has their streams.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use clap::Args;
use cli::in_range;
use client::stream::{NewDevice, NewHardware, StreamConnection};
use client::{OpenOptions, Session};

use convert::{ChannelMap, Mixing, SampleFormat};
use proto::limits::DEVICE_CHANNELS;

use super::of_server::DEFAULT_CHANNELS;
use super::processing::ProcessingArguments;
use super::serve::Options;
use crate::links::{LinkMix, LinkOptions, LinkSource, Links, OwnDevice};
use crate::pipes::{self, PipeFormat};

/// Latency where none is given, ms.
pub(super) const DEFAULT_LATENCY_MS: u32 = 200;
/// Samples in a FIFO where no format is given: what most programs take.
pub(super) const DEFAULT_FORMAT: SampleFormat = SampleFormat::Linear(dsp::Format::S16Le);

/// What links devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One device is heard on another.
    Loopback,
    /// A new device is heard on chosen channels of another.
    Remap,
    /// A new device is heard on several others in step.
    Combined,
    /// A new device is written to a FIFO.
    PipeSink,
    /// A FIFO is heard on a device.
    PipeSource,
}

/// What a link connects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct LinkArguments {
    /// Loopback: the device whose sound is played elsewhere; NAME:capture: what it captures.
    /// Pipe-sink: the device that is written to the FIFO [default: a new one]
    #[arg(long, value_name = "NAME")]
    pub from: Option<LinkSource>,
    /// Loopback, remap, combined: the device that plays it, as `consort device list` names it;
    /// repeatable for a loopback and a combined device
    #[arg(long, value_name = "NAME")]
    pub to: Vec<String>,
    /// Loopback, remap: the channels of that device, from 1 on, one for each channel that is heard
    /// [default: 1,2,…]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = in_range(1..=1024))]
    pub map: Vec<u32>,
    /// Loopback, instead of --map: the positions of the channels that are heard, by PulseAudio's
    /// names, such as front-left,front-right or mono
    #[arg(long, value_name = "POSITIONS", requires = "to_positions", conflicts_with = "map")]
    pub from_positions: Option<ChannelMap>,
    /// Loopback: those of the device that plays them, once for each --to; a position that it lacks
    /// is mixed into the nearest ones, as by PulseAudio
    #[arg(long, value_name = "POSITIONS", requires = "from_positions")]
    pub to_positions: Vec<ChannelMap>,
    /// Loopback: positions into which those of the one are mixed first, and from there into those
    /// of the other
    #[arg(long, value_name = "POSITIONS", requires = "from_positions")]
    pub via_positions: Option<ChannelMap>,
    /// Loopback: positions that only one of the devices has are silent
    #[arg(long, requires = "from_positions")]
    pub unmixed: bool,
    /// Loopback, remap, combined: time from when a frame is heard on one device until it is heard
    /// on the other, ms [default: 200]
    #[arg(long, value_name = "MS", value_parser = in_range(20..=400))]
    pub latency: Option<u32>,
    /// Pipe-sink, pipe-source: the FIFO, which is made unless it is there
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Pipe-sink, pipe-source: the samples in it: s16le, s24le, s32le, float32le and others by
    /// PulseAudio's names [default: s16le]
    #[arg(long, value_name = "FORMAT", value_parser = format_named)]
    pub format: Option<SampleFormat>,
    /// Pipe-sink, pipe-source: channels of a frame [default: 2]
    #[arg(long, value_name = "N", value_parser = in_range(DEVICE_CHANNELS))]
    pub channels: Option<u32>,
    /// What happens to the frames on their way
    #[command(flatten)]
    pub processing: ProcessingArguments,
}

fn format_named(name: &str) -> Result<SampleFormat, String> {
    name.parse().map_err(|unknown: convert::UnknownFormat| unknown.to_string())
}

impl FromStr for LinkSource {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.split_once(':') {
            None => Ok(Self { device: text.into(), captures: false }),
            Some((device, "capture")) => Ok(Self { device: device.into(), captures: true }),
            Some((_, part)) => {
                bail!("a device has no part '{part}': use NAME for what leaves it, or NAME:capture")
            }
        }
    }
}

impl Kind {
    /// Returns the kind of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [Self::Loopback, Self::Remap, Self::Combined, Self::PipeSink, Self::PipeSource];
        all.into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Remap => "remap",
            Self::Combined => "combined",
            Self::PipeSink => "pipe-sink",
            Self::PipeSource => "pipe-source",
        }
    }

    fn is_pipe(self) -> bool {
        matches!(self, Self::PipeSink | Self::PipeSource)
    }

    /// Checks which options are there.
    fn check(self, options: &Options) -> anyhow::Result<()> {
        let LinkArguments { from, to, map, file, format, channels, latency, .. } = &options.link;
        let LinkArguments { from_positions, to_positions, .. } = &options.link;
        let name = self.name();
        let refuse = |is_there: bool, option: &str| {
            ensure!(
                !is_there,
                "{option} is not for a {name} device: see consort device add --help"
            );
            Ok(())
        };
        refuse(options.has_hardware_options(), "an option of sound cards")?;
        refuse(from.is_some() && !matches!(self, Self::Loopback | Self::PipeSink), "--from")?;
        refuse(options.rate.is_some() && from.is_some(), "--rate")?;
        refuse(from_positions.is_some() && self != Self::Loopback, "--from-positions")?;
        let is_processed = options.link.processing != ProcessingArguments::default();
        refuse(is_processed && self != Self::Loopback, "a plug-in or an echo")?;
        refuse(options.playback.is_some() && self != Self::Combined, "--playback")?;
        refuse(options.rate.is_some() && matches!(self, Self::Loopback | Self::Remap), "--rate")?;
        refuse(!map.is_empty() && !matches!(self, Self::Loopback | Self::Remap), "--map")?;
        refuse(latency.is_some() && self == Self::PipeSink, "--latency")?;
        refuse(format.is_some() && !self.is_pipe(), "--format")?;
        refuse(channels.is_some() && !self.is_pipe(), "--channels")?;
        refuse(file.is_some() && !self.is_pipe(), "--file")?;
        refuse(!to.is_empty() && self == Self::PipeSink, "--to")?;
        ensure!(file.is_some() || !self.is_pipe(), "a {name} device needs --file: the FIFO");
        ensure!(
            !map.is_empty() || self != Self::Remap,
            "a remap needs --map: the channels of --to"
        );
        ensure!(
            from_positions.is_none() || to_positions.len() == to.len(),
            "--to-positions is needed once for each --to"
        );
        ensure!(
            to.len() == 1 || map.is_empty(),
            "--map is for one device: use --from-positions and --to-positions for several"
        );
        match (self, to.len()) {
            (Self::PipeSink, _) | (_, 1) | (Self::Combined | Self::Loopback, 2..) => Ok(()),
            (_, 0) => bail!("a {name} device needs --to: the device that plays"),
            _ => {
                bail!("a {name} device plays on one device: --to is repeatable for others")
            }
        }
    }
}

impl LinkArguments {
    /// The command-line arguments that stand for these.
    pub(super) fn words(&self) -> Vec<String> {
        let map = self.map.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let pairs = [
            ("--from", self.from.as_ref().map(ToString::to_string)),
            ("--map", (!map.is_empty()).then_some(map)),
            ("--latency", self.latency.map(|ms| ms.to_string())),
            ("--file", self.file.as_ref().map(|file| file.to_string_lossy().into_owned())),
            ("--format", self.format.map(|format| format.to_string())),
            ("--channels", self.channels.map(|channels| channels.to_string())),
        ];
        let words = pairs.into_iter().filter_map(|(option, value)| Some((option, value?)));
        let from = self.from_positions.iter().map(|map| ("--from-positions", map.to_string()));
        let via = self.via_positions.iter().map(|map| ("--via-positions", map.to_string()));
        let to = self.to.iter().map(|name| ("--to", name.clone()));
        let positions = self.to_positions.iter().map(|map| ("--to-positions", map.to_string()));
        let words = words.chain(from).chain(via).chain(to).chain(positions);
        let unmixed = self.unmixed.then(|| "--unmixed".to_owned());
        let words = words.map(|(option, value)| format!("{option}={value}")).chain(unmixed);
        words.chain(self.processing.words()).collect()
    }

    /// The links from a device to all that it is heard on.
    fn links(&self, kind: Kind, from: &LinkSource) -> Vec<LinkOptions> {
        let map = self.map.iter().map(|channel| channel - 1).collect::<Vec<_>>();
        let mixing = if self.unmixed { Mixing::ByPosition } else { Mixing::Mixed };
        let mix = |at: usize| {
            let (from, to) = (self.from_positions?, *self.to_positions.get(at)?);
            Some(LinkMix { from, via: self.via_positions, to, mixing })
        };
        let link = |(at, to): (usize, &String)| LinkOptions {
            program: format!("consort {}", kind.name()),
            from: from.clone(),
            to: to.clone(),
            map: (!map.is_empty()).then(|| map.clone()),
            mix: mix(at),
            latency_ms: self.latency.unwrap_or(DEFAULT_LATENCY_MS),
            processing: None,
        };
        self.to.iter().enumerate().map(link).collect()
    }
}

/// Starts the links of a device of this kind.
pub(super) fn start(kind: Kind, options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    kind.check(options)?;
    let arguments = &options.link;
    let session = Session::open(options.name.as_deref().unwrap_or_else(|| kind.name()), open)?;
    let new = |channels: u32, rate_hz: Option<u32>| {
        let device = new_device(session.name(), channels, rate_hz, &arguments.to, open)?;
        OwnDevice::add(open, device)
    };
    let chosen = u32::try_from(arguments.map.len())?;
    let device = match kind {
        Kind::Loopback => {
            let from = &arguments.from;
            let from = from.as_ref().context("a loopback needs --from: the device to listen to")?;
            let links = arguments.processing.apply(arguments.links(kind, from))?;
            return Links::start(session, None, links, open);
        }
        Kind::PipeSink | Kind::PipeSource => return start_pipe(session, options, open),
        Kind::Remap => new(chosen, None)?,
        Kind::Combined => new(options.playback.unwrap_or(DEFAULT_CHANNELS), options.rate)?,
    };
    let from = LinkSource { device: device.name().to_owned(), captures: false };
    Links::start(session, Some(device), arguments.links(kind, &from), open)
}

/// Starts a FIFO: one with a device to play to (`--to`) is read, any other is written.
fn start_pipe(session: Session, options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    let arguments = &options.link;
    let format = pipe_format(options, open)?;
    let file = arguments.file.as_deref().unwrap_or_else(|| Path::new(""));
    if let Some(to) = arguments.to.first() {
        let latency_ms = arguments.latency.unwrap_or(DEFAULT_LATENCY_MS);
        return pipes::start_source(session, to, format, latency_ms, file, open);
    }
    let device = match &arguments.from {
        None => {
            let rate_hz = Some(format.rate_hz);
            let device = new_device(session.name(), format.channels, rate_hz, &[], open)?;
            Ok(OwnDevice::add(open, device)?)
        }
        Some(LinkSource { device, captures: false }) => Err(device.clone()),
        Some(source) => bail!("'{source}' cannot be written to a FIFO"),
    };
    pipes::start_sink(session, device, format, file, open)
}

/// The device that is heard elsewhere: it has the rate of the first that it is heard on, so that
/// nothing has to be converted twice.
fn new_device(
    name: &str,
    channels: u32,
    rate_hz: Option<u32>,
    to: &[String],
    open: &OpenOptions,
) -> anyhow::Result<NewDevice> {
    let rate_hz = rate_hz.map_or_else(|| rate_of(to.first(), open), Ok)?;
    Ok(NewDevice {
        name: name.into(),
        hardware: NewHardware::Nothing { channels },
        sample_rate_hz: Some(rate_hz),
        ends_with_connection: true,
    })
}

/// The rate of a device; `None`: of the one that drives.
fn rate_of(device: Option<&String>, open: &OpenOptions) -> anyhow::Result<u32> {
    let server = StreamConnection::open(open.server.as_deref())?;
    Ok(server.device_named(device.map(String::as_str))?.sample_rate_hz)
}

fn pipe_format(options: &Options, open: &OpenOptions) -> anyhow::Result<PipeFormat> {
    let LinkArguments { format, channels, from, to, .. } = &options.link;
    let device = from.as_ref().map(|from| &from.device).or_else(|| to.first());
    Ok(PipeFormat {
        format: format.unwrap_or(DEFAULT_FORMAT),
        rate_hz: options.rate.map_or_else(|| rate_of(device, open), Ok)?,
        channels: channels.unwrap_or(DEFAULT_CHANNELS),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parsed(words: &[&str]) -> Options {
        Line::try_parse_from(std::iter::once("add").chain(words.iter().copied())).unwrap().options
    }

    #[test]
    fn a_process_is_told_all_options_of_a_link() {
        for words in [
            &["loopback", "--from", "a:capture", "--to", "b", "--map", "2,1", "--latency", "50"][..],
            &[
                "loopback",
                "--from",
                "a",
                "--to",
                "b",
                "--to",
                "c",
                "--from-positions",
                "mono",
                "--via-positions",
                "lfe",
                "--to-positions",
                "front-left,lfe",
                "--to-positions",
                "mono",
            ],
            &["loopback", "--to", "b", "--plugin", "amp", "--label", "-l", "--control", "-1,,2"],
            &[
                "loopback",
                "--plugin",
                "/a b",
                "--label",
                "l",
                "--plugin-inputs",
                "In 1",
                "--plugin-outputs",
                "Out,2",
            ],
            &[
                "loopback",
                "--echo-of",
                "k",
                "--echo-heard-on",
                "s",
                "--echo-of-positions",
                "mono",
                "--echo-heard-positions",
                "lfe",
                "--echo-latency",
                "100",
                "--echo-method",
                "speex",
                "--echo-frame",
                "20",
                "--echo-filter",
                "200",
                "--echo-suppress-db",
                "-40",
                "--echo-suppress-active-db",
                "-15",
            ],
            &["combined", "--name", "-all", "--to", "a", "--to", "b", "--playback", "4"],
            &[
                "pipe-sink",
                "--file",
                "-f",
                "--format",
                "s24be",
                "--channels",
                "6",
                "--rate",
                "8000",
            ],
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            // A value may begin with a dash.
            let joined: Vec<String> = words[1..].chunks(2).map(|pair| pair.join("=")).collect();
            let line: Vec<&str> =
                std::iter::once(&*words[0]).chain(joined.iter().map(String::as_str)).collect();
            let options = parsed(&line);
            let again = options.words();
            let again: Vec<&str> = again.iter().map(String::as_str).collect();
            assert_eq!(parsed(&again), options, "{again:?}");
        }
    }

    #[test]
    fn positions_are_given_for_each_device_that_plays() {
        let words =
            ["loopback", "--from", "a", "--to", "b", "--from-positions", "mono", "--to-positions"];
        let one = [&words[..], &["mono", "--unmixed"]].concat();
        let options = parsed(&one);
        assert!(options.words().contains(&"--unmixed".to_owned()));
        let links = options.link.links(Kind::Loopback, options.link.from.as_ref().unwrap());
        assert_eq!(links[0].mix.map(|mix| mix.mixing), Some(Mixing::ByPosition));
        let two = [&words[..], &["mono", "--to", "c"]].concat();
        let reason = Kind::Loopback.check(&parsed(&two)).unwrap_err().to_string();
        assert!(reason.contains("once for each --to"), "{reason}");
    }

    #[test]
    fn an_option_of_another_kind_is_refused() {
        let refused = |words: &[&str]| {
            let options = parsed(words);
            Kind::named(&options.device).unwrap().check(&options).unwrap_err().to_string()
        };
        for (words, expected) in [
            (&["loopback", "--to", "a", "--rate", "44100"][..], "--rate is not for a loopback"),
            (&["remap", "--to", "a", "--from", "b", "--map", "1"], "--from is not for a remap"),
            (
                &["combined", "--to", "a", "--periods", "2", "--margin", "64"],
                "an option of sound cards is not",
            ),
            (&["pipe-sink", "--file", "f", "--latency", "50"], "--latency is not for a pipe-sink"),
        ] {
            let reason = refused(words);
            assert!(reason.contains(expected), "{words:?}: {reason}");
        }
    }
}
