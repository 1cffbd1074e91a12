//! A factor of samples.

use serde::{Deserialize, Serialize};

/// A factor of samples: 0 to [`Gain::MAX`]. 1 changes nothing, and is the default.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f32", into = "f32")]
pub struct Gain(f32);

// No gain is NaN.
impl Eq for Gain {}

/// A number that is no gain.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is no gain: it must be between 0 and {max}", max = Gain::MAX.0)]
pub struct NotAGain(f32);

impl Gain {
    /// The largest: 24 dB.
    pub const MAX: Self = Self(16.0);
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

#[cfg(test)]
mod tests {
    use super::*;

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
