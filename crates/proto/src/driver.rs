//! What can start a server's cycles, and how.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A driver and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriverChoice {
    /// Cycles by the clock, ports that lead nowhere or back.
    Timer {
        /// Capture ports.
        capture: u32,
        /// Playback ports.
        playback: u32,
        /// Hz; `None`: 48000, or that of the server that runs.
        sample_rate_hz: Option<u32>,
        /// What is played on a channel is captured on the same one.
        looped: bool,
        /// As of [`AlsaOptions`].
        monitors: bool,
    },
    /// A sound card.
    Alsa(Box<AlsaOptions>),
    /// Ports that play and record sound files.
    File {
        /// What the capture ports play.
        input: Option<PathBuf>,
        /// Where the playback ports are recorded.
        output: Option<PathBuf>,
        /// Hz; `None`: the input's, or else as a timer's.
        sample_rate_hz: Option<u32>,
        /// Playback ports; `None`: as many as the input has channels.
        playback: Option<u32>,
        /// As fast as the graph can, not in real time.
        fast: bool,
        /// As of [`AlsaOptions`].
        monitors: bool,
    },
}

impl DriverChoice {
    /// Whether there are ports that hear what is played.
    #[must_use]
    pub fn monitors(&self) -> bool {
        match self {
            Self::Timer { monitors, .. } | Self::File { monitors, .. } => *monitors,
            Self::Alsa(options) => options.monitors,
        }
    }
}

/// Another driver for a server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverSwitch {
    /// The driver. Its paths are absolute: the server may run in another directory.
    pub driver: DriverChoice,
    /// Length of a cycle from then on, frames; `None`: as before.
    pub quantum: Option<u32>,
}

/// Everything that can be asked of the driver of a sound card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlsaOptions {
    /// Where the capture ports come from; `None`: there are none.
    pub capture: Option<AlsaSide>,
    /// Where the playback ports lead; `None`: there are none.
    pub playback: Option<AlsaSide>,
    /// Hz; `None`: 48000, or that of the server that runs.
    pub sample_rate_hz: Option<u32>,
    /// Quanta that wait in the device when a cycle has been written, at least 2.
    pub periods: u32,
    /// The only format to use, as ALSA calls it; `None`: the best that the device has.
    pub format: Option<String>,
    /// 16 bits are best.
    pub prefer_16_bits: bool,
    /// What wakes the driver.
    pub wake: WakeRule,
    /// Noise that 16 bits are rounded with.
    pub dither: Dither,
    /// Xruns are recovered from, and not reported.
    pub soft: bool,
    /// There is a port for each playback port that hears the same, a cycle later.
    pub monitors: bool,
    /// Requests to monitor a capture port have the card itself lead that input to the output of the same number.
    pub hardware_monitoring: bool,
}

/// One direction of a sound card's driver.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AlsaSide {
    /// ALSA's name of the device; `None`: that of the other direction, or else the most sensible card.
    pub device: Option<String>,
    /// Ports; `None`: as many as the device has channels.
    pub channels: Option<u32>,
    /// Frames between connector and memory that the device does not tell of.
    pub extra_latency_frames: u32,
    /// A device that has not got this direction is an error; otherwise the driver goes on without.
    pub required: bool,
}

/// What wakes the driver of a sound card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WakeRule {
    /// The device's interrupts if it can make one each quantum, else a timer.
    #[default]
    Best,
    /// The device's interrupts.
    Interrupt,
    /// A timer that follows the device's position through a delay-locked loop.
    Timer,
}

/// Noise that 16 bits are rounded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Dither {
    /// None.
    #[default]
    None,
    /// Evenly distributed, one step wide.
    Rectangular,
    /// The sum of two of these, as papers recommend.
    Triangular,
    /// Triangular, and the rounding's error moved to where the ear hears it least.
    Shaped,
}

impl Default for AlsaOptions {
    /// The most sensible card, in both directions if it has both.
    fn default() -> Self {
        Self {
            capture: Some(AlsaSide::default()),
            playback: Some(AlsaSide::default()),
            sample_rate_hz: None,
            periods: 2,
            format: None,
            prefer_16_bits: false,
            wake: WakeRule::Best,
            dither: Dither::None,
            soft: false,
            monitors: false,
            hardware_monitoring: false,
        }
    }
}
