//! A volume as users write and read it.

use std::str::FromStr;

use cli::UsageError;
use client::stream::{Gain, Volume};

/// A volume, or a change of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Level {
    /// This factor.
    Factor(f32),
    /// So much more.
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

/// Returns a volume as text: a percentage, decibels, and whether it is muted.
pub(crate) fn as_text(volume: Volume) -> String {
    let factor = volume.gain.factor();
    let decibels =
        if factor > 0.0 { format!(" ({:.1} dB)", 20.0 * factor.log10()) } else { String::new() };
    let muted = if volume.muted { ", muted" } else { "" };
    let percent = format!("{:.1}", f64::from(factor) * 100.0);
    format!("{} %{decibels}{muted}", percent.trim_end_matches(".0"))
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
    fn a_volume_is_shown_with_its_decibels() {
        let shown = |factor, muted| as_text(Volume { gain: gain(factor), muted });
        assert_eq!(shown(1.0, false), "100 % (0.0 dB)");
        assert_eq!(shown(0.125, true), "12.5 % (-18.1 dB), muted");
        assert_eq!(shown(0.0, false), "0 %");
    }
}
