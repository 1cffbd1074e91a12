//! What a link connects.

use std::fmt;

use anyhow::{Context, ensure};
use client::stream::{MAX_NAME_BYTES, StreamConnection};
use convert::{ChannelMap, Matrix, Mixing};
use effects::LadspaOptions;

use super::echo::EchoOptions;

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
    /// How all channels of both are mixed, instead of `map`.
    pub mix: Option<LinkMix>,
    /// Time from when a frame is heard at the source until it is heard there, ms.
    pub latency_ms: u32,
    /// What happens to the frames on their way.
    pub processing: Option<Processing>,
}

/// What happens to the frames of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Processing {
    /// They pass through a plug-in, with the rate and the channels of the source.
    Ladspa(LadspaOptions),
    /// An echo is removed from them, with the rate and the channels of the device that plays.
    Echo(EchoOptions),
}

/// The positions of the channels of both devices. What is heard at a position is heard at the same
/// one, and elsewhere as PulseAudio mixes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkMix {
    /// Channels of the source.
    pub from: ChannelMap,
    /// Channels that sound is mixed to in between, if there are other ones.
    pub via: Option<ChannelMap>,
    /// Channels of the device that plays.
    pub to: ChannelMap,
    /// What becomes of positions that only one of them has.
    pub mixing: Mixing,
}

impl LinkMix {
    pub(super) fn matrix(&self) -> Matrix {
        let Self { from, via, to, mixing } = self;
        match via {
            None => Matrix::new(from, to, *mixing),
            Some(via) => Matrix::new(via, to, *mixing).after(&Matrix::new(from, via, *mixing)),
        }
    }
}

/// A link's devices, as they are now.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ends {
    pub(super) source_hz: u32,
    pub(super) sink_hz: u32,
    /// How many channels of the source are heard, from the first on.
    pub(super) channels: usize,
    /// The channels of the sink that play.
    pub(super) plays: Vec<u32>,
    /// From the former to the latter; `None`: the first to the first, and so on.
    pub(super) matrix: Option<Matrix>,
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
        if let Some(LinkMix { from, to, .. }) = &self.mix {
            write!(formatter, " ({from} to {to})")?;
        }
        match &self.processing {
            Some(Processing::Ladspa(ladspa)) => {
                write!(formatter, " through {} {}", ladspa.plugin, ladspa.label)?;
            }
            Some(Processing::Echo(echo)) => write!(formatter, " without the echo of {}", echo.of)?,
            None => {}
        }
        Ok(())
    }
}

impl LinkOptions {
    /// Returns what its streams are called: as much of what it connects as the server takes.
    pub(super) fn stream_name(&self) -> String {
        let is_in = |(at, letter): &(usize, char)| at + letter.len_utf8() <= MAX_NAME_BYTES;
        let name = self.to_string().replace(char::is_control, "?");
        name.char_indices().take_while(is_in).map(|(_, letter)| letter).collect()
    }

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
        let (source_hz, sink_hz) = (source.sample_rate_hz, sink.sample_rate_hz);
        if let Some(mix) = &self.mix {
            let (channels, plays) = (mix.from.channels(), mix.to.channels());
            ensure!(
                channels <= there as usize && plays <= sink.channels as usize,
                "'{}' has {there} channels and '{}' has {}: there are more positions",
                self.from,
                self.to,
                sink.channels
            );
            let matrix = mix.matrix();
            let plays = (0..u32::try_from(plays)?).collect();
            return Ok(Ends { source_hz, sink_hz, channels, plays, matrix: Some(matrix) });
        }
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
        Ok(Ends { source_hz, sink_hz, channels: map.len(), plays: map, matrix: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_names_that_the_server_takes() {
        let many: ChannelMap = "surround-71".parse().expect("a map");
        let (mixing, from) = (Mixing::Mixed, LinkSource { device: "é\n".into(), captures: false });
        let options = LinkOptions {
            program: "test".into(),
            from,
            to: "b".into(),
            map: None,
            mix: Some(LinkMix { from: many, via: None, to: many, mixing }),
            latency_ms: 100,
            processing: None,
        };
        let name = options.stream_name();
        assert!(options.to_string().len() > MAX_NAME_BYTES && name.len() <= MAX_NAME_BYTES);
        assert!(name.starts_with("é? to b (front-left,"), "{name}");
    }

    #[test]
    fn channels_are_mixed_into_those_in_between_first() {
        let stereo: ChannelMap = "front-left,front-right".parse().expect("a map");
        let mono = "mono".parse().expect("a map");
        let mixing = Mixing::Mixed;
        let mix = LinkMix { from: stereo, via: Some(mono), to: stereo, mixing };
        let rows = |matrix: Matrix| [0, 1].map(|row| matrix.row(row).to_vec());
        assert_eq!(rows(mix.matrix()), [[0.5, 0.5], [0.5, 0.5]]);
        let straight = LinkMix { via: None, ..mix };
        assert_eq!(rows(straight.matrix()), [[1.0, 0.0], [0.0, 1.0]]);
    }
}
