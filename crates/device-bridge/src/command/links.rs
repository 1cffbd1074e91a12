//! Links between devices: their options, and the process that has their streams.

use std::str::FromStr;

use anyhow::{Context, ensure};
use clap::Args;
use cli::in_range;
use client::{OpenOptions, Session};

use super::serve::Options;
use crate::links::{LinkOptions, LinkSource, Links};

/// Latency where none is given, ms.
const DEFAULT_LATENCY_MS: u32 = 200;

/// What a link connects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct LinkArguments {
    /// Loopback: the device whose sound is played elsewhere; NAME:capture: what it captures
    #[arg(long, value_name = "NAME")]
    pub from: Option<LinkSource>,
    /// Loopback: the device that plays it, as `consort device list` names it
    #[arg(long, value_name = "NAME")]
    pub to: Option<String>,
    /// Loopback: the channels of the device that plays, from 1 on, one for each channel that is
    /// heard [default: 1,2,…]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = in_range(1..=1024))]
    pub map: Vec<u32>,
    /// Loopback: time from when a frame is heard on one device until it is heard on the other, ms
    /// [default: 200]
    #[arg(long, value_name = "MS", value_parser = in_range(20..=400))]
    pub latency: Option<u32>,
}

impl FromStr for LinkSource {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.split_once(':') {
            None => Ok(Self { device: text.into(), captures: false }),
            Some((device, "capture")) => Ok(Self { device: device.into(), captures: true }),
            Some((_, part)) => anyhow::bail!(
                "a device has no part '{part}': use NAME for what leaves it, or NAME:capture"
            ),
        }
    }
}

impl LinkArguments {
    /// The command-line arguments that stand for these.
    pub(super) fn words(&self) -> Vec<String> {
        let map = self.map.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let pairs = [
            ("--from", self.from.as_ref().map(ToString::to_string)),
            ("--to", self.to.clone()),
            ("--map", (!map.is_empty()).then_some(map)),
            ("--latency", self.latency.map(|ms| ms.to_string())),
        ];
        let words = pairs.into_iter().filter_map(|(option, value)| Some((option, value?)));
        words.map(|(option, value)| format!("{option}={value}")).collect()
    }

    fn link(&self, program: &str, from: LinkSource, to: &str) -> LinkOptions {
        let map = self.map.iter().map(|channel| channel - 1).collect::<Vec<_>>();
        LinkOptions {
            program: program.into(),
            from,
            to: to.into(),
            map: (!map.is_empty()).then_some(map),
            latency_ms: self.latency.unwrap_or(DEFAULT_LATENCY_MS),
        }
    }
}

/// Starts the links of a device of this kind.
pub(super) fn start(options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    let arguments = &options.link;
    let from =
        arguments.from.clone().context("a loopback needs --from: the device to listen to")?;
    let to = arguments.to.as_deref().context("a loopback needs --to: the device that plays")?;
    ensure!(
        !options.has_hardware_options() && options.playback.is_none() && options.rate.is_none(),
        "a loopback takes --from, --to, --map, --latency and --name alone: it has no hardware"
    );
    let link = arguments.link("consort loopback", from, to);
    let name = options.name.as_deref().unwrap_or(&options.device);
    let session = Session::open(name, open)?;
    Links::start(session, format!("loopback from {link}"), vec![link], open)
}
