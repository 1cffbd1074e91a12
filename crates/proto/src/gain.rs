//! Factors of samples.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A factor of samples: 0 to [`Gain::MAX`]. 1 changes nothing, and is the default.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f32", into = "f32")]
pub struct Gain(f32);

// No gain is NaN.
impl Eq for Gain {}

/// A number that is no gain.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is not a gain: it must be between 0 and {max}", max = Gain::MAX.0)]
pub struct NotAGain(f32);

impl Gain {
    /// The largest: 24 dB.
    pub const MAX: Self = Self(16.0);
    /// Nothing is heard.
    pub const SILENCE: Self = Self(0.0);
    /// Samples stay as they are.
    pub const UNITY: Self = Self(1.0);

    /// Returns the gain of this factor.
    ///
    /// # Errors
    /// [`NotAGain`].
    pub fn new(factor: f32) -> Result<Self, NotAGain> {
        // NaN is in no range. Of the two zeros, one is enough.
        let is_gain = (0.0..=Self::MAX.0).contains(&factor);
        if is_gain { Ok(Self(factor.abs())) } else { Err(NotAGain(factor)) }
    }

    /// Returns the factor.
    #[must_use]
    pub const fn factor(self) -> f32 {
        self.0
    }
}

impl Default for Gain {
    fn default() -> Self {
        Self::UNITY
    }
}

impl fmt::Display for Gain {
    /// A percentage, and decibels unless it is silence.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{:.1}", f64::from(self.0) * 100.0);
        write!(to, "{} %", percent.trim_end_matches(".0"))?;
        if self.0 > 0.0 { write!(to, " ({:.1} dB)", 20.0 * self.0.log10()) } else { Ok(()) }
    }
}

impl TryFrom<f32> for Gain {
    type Error = NotAGain;

    fn try_from(factor: f32) -> Result<Self, NotAGain> {
        Self::new(factor)
    }
}

impl From<Gain> for f32 {
    fn from(gain: Gain) -> Self {
        gain.0
    }
}

/// A gain for each channel of a device. Channels beyond the last have that of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChannelGains([Gain; ChannelGains::CHANNELS]);

impl ChannelGains {
    /// Channels that can have a gain of their own: as many as a stream can have.
    pub const CHANNELS: usize = 32;

    /// Returns the same gain for all channels.
    #[must_use]
    pub const fn all(gain: Gain) -> Self {
        Self([gain; Self::CHANNELS])
    }

    /// Returns these gains of the first channels. Further channels, of a device that is opened with
    /// more of them, have the greatest. `None` without gains, or with more than a device can have.
    #[must_use]
    pub fn of(gains: &[Gain]) -> Option<Self> {
        let mut all = Self::all(greatest(gains)?);
        all.0.get_mut(..gains.len())?.copy_from_slice(gains);
        Some(all)
    }

    /// Returns the gain of a channel.
    #[must_use]
    pub fn channel(&self, channel: usize) -> Gain {
        self.0[channel.min(Self::CHANNELS - 1)]
    }

    /// Returns the gains of the first channels: of one at least, and not of those that have that
    /// of the last.
    #[must_use]
    pub fn first(&self, channels: usize) -> &[Gain] {
        &self.0[..channels.clamp(1, Self::CHANNELS)]
    }

    /// Returns the shortest list of gains [of](Self::of) which these are.
    #[must_use]
    pub fn shortest(&self) -> &[Gain] {
        let lists = (1..=Self::CHANNELS).map(|channels| &self.0[..channels]);
        let found = lists.into_iter().find(|gains| Self::of(gains).as_ref() == Some(self));
        found.unwrap_or(&self.0)
    }

    /// Returns the greatest gain of the first channels.
    #[must_use]
    pub fn greatest(&self, channels: usize) -> Gain {
        greatest(self.first(channels)).unwrap_or_default()
    }

    /// Returns the factors.
    #[must_use]
    pub fn factors(&self) -> [f32; Self::CHANNELS] {
        self.0.map(Gain::factor)
    }
}

fn greatest(gains: &[Gain]) -> Option<Gain> {
    gains.iter().copied().reduce(|one, other| if other > one { other } else { one })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_without_a_gain_have_the_greatest() {
        let [quiet, loud] = [0.25, 0.5].map(|factor| Gain::new(factor).unwrap());
        let gains = ChannelGains::of(&[loud, quiet]).unwrap();
        assert_eq!(
            [0, 1, 2, 31, 1000].map(|at| gains.channel(at)),
            [loud, quiet, loud, loud, loud]
        );
        assert_eq!((gains.first(0), gains.first(2)), (&[loud][..], &[loud, quiet][..]));
        assert_eq!(gains.first(1000).len(), ChannelGains::CHANNELS);
        assert_eq!(gains.greatest(2), loud);
        assert_eq!(ChannelGains::of(&[]), None);
        assert_eq!(ChannelGains::of(&[quiet; ChannelGains::CHANNELS + 1]), None);
        assert_eq!(
            ChannelGains::of(&[quiet; ChannelGains::CHANNELS]),
            Some(ChannelGains::all(quiet))
        );
    }

    #[test]
    fn a_factor_that_is_no_gain_is_refused_also_as_bytes() {
        for factor in [f32::NAN, f32::INFINITY, -0.1, 16.001] {
            assert!(Gain::new(factor).is_err(), "{factor}");
            let bytes = crate::encode(&factor);
            assert!(crate::decode::<Gain>(&bytes).is_err(), "{factor}");
        }
        for factor in [0.0, -0.0, 0.5, 1.0, 16.0] {
            let gain = Gain::new(factor).unwrap();
            assert_eq!(crate::decode::<Gain>(&crate::encode(&gain)), Ok(gain));
            assert!(gain.factor().is_sign_positive());
        }
    }
}
