//! Links between devices: their options, and the process that has their streams.

use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use clap::Args;
use cli::in_range;
use client::stream::{NewDevice, StreamConnection};
use client::{OpenOptions, Session};

use super::null::DEFAULT_CHANNELS;
use super::serve::Options;
use crate::links::{LinkOptions, LinkSource, Links, OwnDevice};

/// Latency where none is given, ms.
const DEFAULT_LATENCY_MS: u32 = 200;

/// What links devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One device is heard on another.
    Loopback,
    /// A new device is heard on chosen channels of another.
    Remap,
    /// A new device is heard on several others in step.
    Combined,
}

/// What a link connects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct LinkArguments {
    /// Loopback: the device whose sound is played elsewhere; NAME:capture: what it captures
    #[arg(long, value_name = "NAME")]
    pub from: Option<LinkSource>,
    /// Loopback, remap, combined: the device that plays it, as `consort device list` names it;
    /// repeatable for a combined device
    #[arg(long, value_name = "NAME")]
    pub to: Vec<String>,
    /// Loopback, remap: the channels of that device, from 1 on, one for each channel that is heard
    /// [default: 1,2,…]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = in_range(1..=1024))]
    pub map: Vec<u32>,
    /// Loopback, remap, combined: time from when a frame is heard on one device until it is heard
    /// on the other, ms [default: 200]
    #[arg(long, value_name = "MS", value_parser = in_range(20..=400))]
    pub latency: Option<u32>,
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
        [Self::Loopback, Self::Remap, Self::Combined].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Remap => "remap",
            Self::Combined => "combined",
        }
    }

    /// Checks which options are there.
    fn check(self, options: &Options) -> anyhow::Result<()> {
        let LinkArguments { from, to, map, .. } = &options.link;
        let name = self.name();
        ensure!(
            !options.has_hardware_options(),
            "a {name} device takes no options of cards: it has no hardware"
        );
        ensure!(
            from.is_none() || self == Self::Loopback,
            "--from is for a loopback: a {name} device is heard itself"
        );
        let has_shape = options.playback.is_some() || options.rate.is_some();
        ensure!(
            !has_shape || self == Self::Combined,
            "--playback and --rate are for a combined device: a {name} device has those of the \
             others"
        );
        ensure!(map.is_empty() || self != Self::Combined, "--map is for a loopback or a remap");
        ensure!(
            !map.is_empty() || self != Self::Remap,
            "a remap needs --map: the channels of --to"
        );
        match (self, to.len()) {
            (_, 0) => bail!("a {name} device needs --to: the device that plays"),
            (Self::Loopback | Self::Remap, 2..) => {
                bail!("a {name} device plays on one device: --to is repeatable for a combined one")
            }
            _ => Ok(()),
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
        ];
        let words = pairs.into_iter().filter_map(|(option, value)| Some((option, value?)));
        let to = self.to.iter().map(|name| ("--to", name.clone()));
        words.chain(to).map(|(option, value)| format!("{option}={value}")).collect()
    }

    /// The links from a device to all that it is heard on.
    fn links(&self, kind: Kind, from: &LinkSource) -> Vec<LinkOptions> {
        let map = self.map.iter().map(|channel| channel - 1).collect::<Vec<_>>();
        let link = |to: &String| LinkOptions {
            program: format!("consort {}", kind.name()),
            from: from.clone(),
            to: to.clone(),
            map: (!map.is_empty()).then(|| map.clone()),
            latency_ms: self.latency.unwrap_or(DEFAULT_LATENCY_MS),
        };
        self.to.iter().map(link).collect()
    }
}

/// Starts the links of a device of this kind.
pub(super) fn start(kind: Kind, options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    kind.check(options)?;
    let arguments = &options.link;
    let session = Session::open(options.name.as_deref().unwrap_or_else(|| kind.name()), open)?;
    if kind == Kind::Loopback {
        let from = &arguments.from;
        let from = from.as_ref().context("a loopback needs --from: the device to listen to")?;
        return Links::start(session, None, arguments.links(kind, from), open);
    }
    let device = OwnDevice::add(open, new_device(session.name(), options, open)?)?;
    let from = LinkSource { device: device.name().to_owned(), captures: false };
    Links::start(session, Some(device), arguments.links(kind, &from), open)
}

/// The device that is heard on others: it has as many channels as are chosen there, and the rate of
/// the first, so that nothing has to be converted twice.
fn new_device(name: &str, options: &Options, open: &OpenOptions) -> anyhow::Result<NewDevice> {
    let server = StreamConnection::open(open.server.as_deref())?;
    let first = server.device_named(options.link.to.first().map(String::as_str))?;
    let channels = match u32::try_from(options.link.map.len())? {
        0 => options.playback.unwrap_or(DEFAULT_CHANNELS),
        chosen => chosen,
    };
    let sample_rate_hz = Some(options.rate.unwrap_or(first.sample_rate_hz));
    Ok(NewDevice { name: name.into(), channels, sample_rate_hz, ends_with_connection: true })
}
