//! What a link connects.

use std::fmt;

use anyhow::{Context, ensure};
use client::stream::StreamConnection;

/// Channels of a stream, at most.
const MOST_CHANNELS: u32 = 32;

/// Where the frames of a link come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSource {
    /// Name of the device.
    pub device: String,
    /// What the device captures, instead of what leaves it.
    pub captures: bool,
}

/// What is heard on one device is played on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOptions {
    /// What the program is called, for users.
    pub program: String,
    /// Where the frames come from.
    pub from: LinkSource,
    /// Name of the device that plays them.
    pub to: String,
    /// The channel of that device for each channel of the source, counted from 0; `None`: the same
    /// ones, as far as both have them.
    pub map: Option<Vec<u32>>,
    /// Time from when a frame is heard at the source until it is heard there, ms.
    pub latency_ms: u32,
}

/// A link's devices, as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) source_hz: u32,
    pub(super) sink_hz: u32,
    /// The sink's channel for each channel of the source.
    pub(super) map: Vec<u32>,
}

impl fmt::Display for LinkSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let captures = if self.captures { ":capture" } else { "" };
        write!(formatter, "{}{captures}", self.device)
    }
}

impl fmt::Display for LinkOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} to {}", self.from, self.to)?;
        if let Some(map) = &self.map {
            let numbers: Vec<String> =
                map.iter().map(|channel| (channel + 1).to_string()).collect();
            write!(formatter, " (channels {})", numbers.join(", "))?;
        }
        Ok(())
    }
}

impl LinkOptions {
    /// Looks at the devices.
    ///
    /// # Errors
    /// One of them is not there, or has no such channels.
    pub(super) fn ends(&self, connection: &StreamConnection) -> anyhow::Result<Ends> {
        let LinkSource { device, captures } = &self.from;
        let source = connection.device_named(Some(device))?;
        let sink = connection.device_named(Some(&self.to))?;
        ensure!(
            *captures || *device != self.to,
            "'{device}' would be played into itself: choose another device with --to"
        );
        let there = if *captures { source.captured } else { source.channels };
        ensure!(there > 0, "'{}' has no channels that can be recorded", self.from);
        ensure!(sink.channels > 0, "'{}' plays no streams", self.to);
        let map = match &self.map {
            Some(map) => map.clone(),
            None => (0..there.min(sink.channels).min(MOST_CHANNELS)).collect(),
        };
        let count = u32::try_from(map.len()).context("too many channels")?;
        ensure!(
            (1..=there.min(MOST_CHANNELS)).contains(&count),
            "'{}' has {there} channels: --map takes as many at most",
            self.from
        );
        ensure!(
            map.iter().all(|channel| *channel < sink.channels),
            "'{}' has channels 1 to {}: --map takes these",
            self.to,
            sink.channels
        );
        Ok(Ends { source_hz: source.sample_rate_hz, sink_hz: sink.sample_rate_hz, map })
    }
}
