//! The positions of all channels of a program or a stream.

use std::fmt;
use std::str::FromStr;

use super::ChannelPosition;
use super::position::AUX_POSITIONS;
use crate::MAX_CHANNELS;

/// The positions of 1 to [`MAX_CHANNELS`] channels, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChannelMap {
    /// Mono beyond `channels`.
    positions: [ChannelPosition; MAX_CHANNELS],
    channels: usize,
}

/// Why a channel map is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMap {
    /// A position that does not exist.
    #[error("unknown channel position \"{0}\": use names such as front-left, lfe or aux0")]
    UnknownPosition(String),
    /// No channel, or too many.
    #[error("{0} channels: a map has 1 to {MAX_CHANNELS}")]
    Channels(usize),
}

impl ChannelMap {
    /// Returns the map of the given positions.
    ///
    /// # Errors
    /// Without a position, with more than [`MAX_CHANNELS`], or with an auxiliary position beyond
    /// 31.
    pub fn new(positions: &[ChannelPosition]) -> Result<Self, InvalidMap> {
        let mut all = [ChannelPosition::Mono; MAX_CHANNELS];
        let channels = positions.len();
        match all.get_mut(..channels) {
            Some(room) if channels > 0 => room.copy_from_slice(positions),
            _ => return Err(InvalidMap::Channels(channels)),
        }
        let is_known = |position: &ChannelPosition| match position {
            ChannelPosition::Aux(number) => *number < AUX_POSITIONS,
            _ => true,
        };
        match positions.iter().find(|position| !is_known(position)) {
            Some(position) => Err(InvalidMap::UnknownPosition(position.to_string())),
            None => Ok(Self { positions: all, channels }),
        }
    }

    /// Returns the number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the position of each channel.
    #[must_use]
    pub fn positions(&self) -> &[ChannelPosition] {
        &self.positions[..self.channels]
    }
}

/// Maps that have a name, in PulseAudio's text form.
const NAMED: [(&str, &str); 7] = [
    ("stereo", "front-left,front-right"),
    ("surround-21", "front-left,front-right,lfe"),
    ("surround-40", "front-left,front-right,rear-left,rear-right"),
    ("surround-41", "front-left,front-right,rear-left,rear-right,lfe"),
    ("surround-50", "front-left,front-right,rear-left,rear-right,front-center"),
    ("surround-51", "front-left,front-right,rear-left,rear-right,front-center,lfe"),
    (
        "surround-71",
        "front-left,front-right,rear-left,rear-right,front-center,lfe,side-left,side-right",
    ),
];

impl FromStr for ChannelMap {
    type Err = InvalidMap;

    /// Takes PulseAudio's text form: names of positions, separated by commas, or the name of a
    /// usual map such as `surround-51`.
    fn from_str(text: &str) -> Result<Self, InvalidMap> {
        let named = NAMED.iter().find(|(name, _)| *name == text);
        let list = named.map_or(text, |(_, list)| list);
        let list = list.strip_suffix(',').unwrap_or(list);
        let position = |name: &str| {
            ChannelPosition::named(name).ok_or_else(|| InvalidMap::UnknownPosition(name.into()))
        };
        Self::new(&list.split(',').map(position).collect::<Result<Vec<_>, _>>()?)
    }
}

impl fmt::Display for ChannelMap {
    /// Prints the names of the positions, as PulseAudio does.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (channel, position) in self.positions().iter().enumerate() {
            let separator = if channel == 0 { "" } else { "," };
            write!(formatter, "{separator}{position}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ChannelMap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ChannelMap({self})")
    }
}
