//! A volume as users write and read it.

use std::str::FromStr;

use cli::UsageError;
use client::stream::{ChannelGains, DeviceVolume, Gain, Volume};

/// A volume, or a change of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Level {
    /// This factor.
    Factor(f32),
    /// This much louder; quieter if it is negative.
    By(f32),
    /// This many times as loud.
    Times(f32),
}

fn of_decibels(decibels: f32) -> f32 {
    10.0_f32.powf(decibels / 20.0)
}

impl FromStr for Level {
    type Err = UsageError;

    fn from_str(value: &str) -> Result<Self, UsageError> {
        let wrong = || {
            UsageError(format!(
                "'{value}' is not a volume: write 0.5, 50%, -6dB, or a change: +5%, -5%, +3dB"
            ))
        };
        let number = |text: &str| {
            let number = text.trim().parse::<f32>().ok().filter(|number| number.is_finite());
            number.ok_or_else(wrong)
        };
        let value = value.trim();
        if let Some(decibels) = value.strip_suffix("dB") {
            let factor = of_decibels(number(decibels)?);
            return Ok(if value.starts_with('+') {
                Self::Times(factor)
            } else {
                Self::Factor(factor)
            });
        }
        let factor = match value.strip_suffix('%') {
            Some(percent) => number(percent)? / 100.0,
            None => number(value)?,
        };
        Ok(if value.starts_with(['+', '-']) { Self::By(factor) } else { Self::Factor(factor) })
    }
}

impl Level {
    /// Returns the gain that comes of `before`. A change ends at the limits of a gain.
    pub(super) fn of(self, before: Gain) -> Result<Gain, UsageError> {
        let within = |factor: f32| factor.clamp(0.0, Gain::MAX.factor());
        let factor = match self {
            Self::Factor(factor) => factor,
            Self::By(more) => within(before.factor() + more),
            Self::Times(factor) => within(before.factor() * factor),
        };
        Gain::new(factor).map_err(|_| {
            UsageError(format!(
                "a volume of {:.0}% is out of range: 0% to {:.0}% (24 dB)",
                factor * 100.0,
                Gain::MAX.factor() * 100.0
            ))
        })
    }
}

/// A change of a volume.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// Changes how loud it is.
    Level(Level),
    /// Mutes or unmutes it.
    Muted(bool),
}

impl Change {
    /// Returns the gain and the mute that a stream is to have.
    pub(super) fn of_stream(
        self,
        before: Volume,
    ) -> Result<(Option<Gain>, Option<bool>), UsageError> {
        match self {
            Self::Level(level) => Ok((Some(level.of(before.gain)?), None)),
            Self::Muted(muted) => Ok((None, Some(muted))),
        }
    }

    /// Returns those of a device: each of its channels is changed alike.
    pub(super) fn of_device(
        self,
        before: DeviceVolume,
    ) -> Result<(Option<ChannelGains>, Option<bool>), UsageError> {
        match self {
            Self::Level(level) => {
                let gains = before.gains.first(ChannelGains::CHANNELS).iter();
                let gains: Result<Vec<Gain>, _> = gains.map(|gain| level.of(*gain)).collect();
                Ok((ChannelGains::of(&gains?), None))
            }
            Self::Muted(muted) => Ok((None, Some(muted))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(factor: f32) -> Gain {
        Gain::new(factor).unwrap()
    }

    #[test]
    fn a_level_is_a_factor_a_percentage_or_decibels_or_a_change_of_these() {
        for (text, expected) in [
            ("0.5", 0.5),
            ("50%", 0.5),
            ("50 %", 0.5),
            ("0dB", 1.0),
            ("-6 dB", 0.501_187_2),
            ("6dB", 1.995_262_3),
            ("+5%", 0.45),
            ("-0.1", 0.3),
            ("+20dB", 4.0),
            ("-90%", 0.0),
            ("+90dB", 16.0),
        ] {
            let level: Level = text.parse().unwrap();
            let factor = level.of(gain(0.4)).unwrap().factor();
            assert!((factor - expected).abs() < 1e-6, "{text}: {factor}");
        }
        for text in ["loud", "", "%", "dB", "nan", "inf", "infdB", "1 2", "--5%"] {
            assert!(text.parse::<Level>().is_err(), "{text}");
        }
        for text in ["17", "1700%", "30dB"] {
            let level: Level = text.parse().unwrap();
            assert!(level.of(gain(1.0)).unwrap_err().0.contains("out of range"), "{text}");
        }
    }

    #[test]
    fn a_change_of_a_device_is_one_of_each_channel() {
        let gains = ChannelGains::of(&[gain(0.5), gain(0.25)]).unwrap();
        let changed = |text: &str| {
            let change = Change::Level(text.parse().unwrap());
            let (gains, _) = change.of_device(DeviceVolume { gains, muted: false }).unwrap();
            [0, 1].map(|channel| gains.unwrap().channel(channel).factor())
        };
        assert_eq!(changed("+25%"), [0.75, 0.5]);
        assert_eq!(changed("-50%"), [0.0, 0.0]);
        assert_eq!(changed("0.5"), [0.5, 0.5]);
    }
}
