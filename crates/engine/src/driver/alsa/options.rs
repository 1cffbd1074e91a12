//! How a sound card is to be driven.

use dsp::Format;

/// Everything that can be asked of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlsaOptions {
    /// Where the capture ports come from; `None`: there are none.
    pub capture: Option<AlsaSide>,
    /// Where the playback ports lead; `None`: there are none.
    pub playback: Option<AlsaSide>,
    /// Hz; `None`: 48000.
    pub sample_rate_hz: Option<u32>,
    /// Quanta that wait in the device when a cycle has been written, at least 2.
    pub periods: u32,
    /// The only format to use; `None`: the best that the device has.
    pub format: Option<Format>,
    /// 16 bits are best.
    pub prefer_16_bits: bool,
    /// What wakes the driver.
    pub wake: WakeRule,
    /// Noise that 16 bits are rounded with.
    pub dither: Dither,
    /// Xruns are recovered from, and not reported.
    pub soft: bool,
}

/// One direction of the driver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

/// What wakes the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
        }
    }
}

const NATIVE_FIRST: [Format; 10] = if cfg!(target_endian = "big") {
    [
        Format::FloatBe,
        Format::S32Be,
        Format::S24Be,
        Format::S24PackedBe,
        Format::FloatLe,
        Format::S32Le,
        Format::S24Le,
        Format::S24PackedLe,
        Format::S16Be,
        Format::S16Le,
    ]
} else {
    [
        Format::FloatLe,
        Format::S32Le,
        Format::S24Le,
        Format::S24PackedLe,
        Format::FloatBe,
        Format::S32Be,
        Format::S24Be,
        Format::S24PackedBe,
        Format::S16Le,
        Format::S16Be,
    ]
};

impl AlsaOptions {
    /// Formats, best first.
    pub(super) fn formats(&self) -> Vec<Format> {
        if let Some(format) = self.format {
            return vec![format];
        }
        let mut formats = NATIVE_FIRST.to_vec();
        if self.prefer_16_bits {
            // Stable: among the others the order stays.
            formats.sort_by_key(|format| format.bytes_per_sample() != 2);
        }
        formats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_tried_and_16_bits_last_unless_preferred() {
        let mut options = AlsaOptions::default();
        assert!(Format::ALL.iter().all(|format| options.formats().contains(format)));
        assert_eq!(options.formats()[8].bytes_per_sample(), 2);
        options.prefer_16_bits = true;
        assert_eq!(options.formats()[0].bytes_per_sample(), 2);
        assert_eq!(options.formats().len(), 10);
        options.format = Some(Format::S24PackedBe);
        assert_eq!(options.formats(), [Format::S24PackedBe]);
    }
}
