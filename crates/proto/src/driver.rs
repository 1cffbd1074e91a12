//! The drivers that can start a server's cycles, and their options.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A driver and its options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriverChoice {
    /// A timer. Its ports lead nowhere, or loop back.
    Timer {
        /// Number of capture ports.
        capture: u32,
        /// Number of playback ports.
        playback: u32,
        /// Sample rate, Hz; `None`: 48000, or the running server's.
        sample_rate_hz: Option<u32>,
        /// Whether each channel captures what is played on it.
        looped: bool,
        /// Same as [`AlsaOptions::monitors`].
        monitors: bool,
    },
    /// A sound card.
    Alsa(Box<AlsaOptions>),
    /// Sound files that ports play and record.
    File {
        /// File that the capture ports play.
        input: Option<PathBuf>,
        /// File that records the playback ports.
        output: Option<PathBuf>,
        /// Sample rate, Hz; `None`: the input's, otherwise as for a timer.
        sample_rate_hz: Option<u32>,
        /// Number of playback ports; `None`: as many as the input has channels.
        playback: Option<u32>,
        /// Whether to run as fast as the graph can, instead of in real time.
        fast: bool,
        /// Same as [`AlsaOptions::monitors`].
        monitors: bool,
    },
}

impl DriverChoice {
    /// Returns whether there are ports that carry what is played.
    #[must_use]
    pub fn monitors(&self) -> bool {
        match self {
            Self::Timer { monitors, .. } | Self::File { monitors, .. } => *monitors,
            Self::Alsa(options) => options.monitors,
        }
    }
}

/// A request to replace a running server's driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverSwitch {
    /// The new driver. Its paths are absolute, since the server may run in another directory.
    pub driver: DriverChoice,
    /// Quantum from then on, frames; `None`: unchanged.
    pub quantum: Option<u32>,
}

/// Options of a sound card's driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlsaOptions {
    /// Device of the capture ports; `None`: there are none.
    pub capture: Option<AlsaSide>,
    /// Device of the playback ports; `None`: there are none.
    pub playback: Option<AlsaSide>,
    /// Sample rate, Hz; `None`: 48000, or the running server's.
    pub sample_rate_hz: Option<u32>,
    /// Quanta that are queued in the device after a cycle was written, at least 2.
    pub periods: u32,
    /// The only format to use, by ALSA's name; `None`: the best that the device supports.
    pub format: Option<String>,
    /// Whether to prefer 16 bits.
    pub prefer_16_bits: bool,
    /// What wakes the driver.
    pub wake: WakeRule,
    /// Dither noise for 16 bits.
    pub dither: Dither,
    /// Whether to recover from xruns without reporting them.
    pub soft: bool,
    /// Whether each playback port has a monitor port that carries the same, one cycle later.
    pub monitors: bool,
    /// Whether monitor requests of a capture port make the card itself route that input to the
    /// output of the same number.
    pub hardware_monitoring: bool,
    /// Priority of the card's reservation on the session bus: a program that asks with a higher one
    /// gets the card.
    pub reserve_priority: i32,
    /// Names of the choices to make of the card's clock controls.
    pub clock_sources: Vec<String>,
}

/// One direction of a sound card's driver.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AlsaSide {
    /// ALSA's name of the device; `None`: the other direction's, otherwise the most suitable card.
    pub device: Option<String>,
    /// Number of ports; `None`: as many as the device has channels.
    pub channels: Option<u32>,
    /// Frames of latency between connector and memory that the device does not report.
    pub extra_latency_frames: u32,
    /// Whether a device without this direction is an error; otherwise the driver runs without it.
    pub required: bool,
}

/// What wakes the driver of a sound card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WakeRule {
    /// The device's interrupts if it can raise one per quantum, otherwise a timer.
    #[default]
    Best,
    /// The device's interrupts.
    Interrupt,
    /// A timer that follows the device's position through a delay-locked loop.
    Timer,
}

/// Dither noise for 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Dither {
    /// No dither.
    #[default]
    None,
    /// Rectangular distribution, one step wide.
    Rectangular,
    /// Triangular distribution: the sum of two rectangular ones.
    Triangular,
    /// Triangular, with the rounding error shaped to where the ear hears it least.
    Shaped,
}

impl Default for AlsaOptions {
    /// Returns the most suitable card, in both directions if it has both.
    fn default() -> Self {
        Self {
            capture: Some(AlsaSide::default()),
            playback: Some(AlsaSide::default()),
            sample_rate_hz: None,
            periods: crate::defaults::PERIODS,
            format: None,
            prefer_16_bits: false,
            wake: WakeRule::Best,
            dither: Dither::None,
            soft: false,
            monitors: false,
            hardware_monitoring: false,
            reserve_priority: crate::defaults::RESERVE_PRIORITY,
            clock_sources: Vec::new(),
        }
    }
}
