//! A stereo recording that has been checked.

use std::ops::Range;

use super::LatencyError;

/// A channel of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The direct sound.
    Left,
    /// The sound that went through the system under test.
    Right,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Right => "right",
        })
    }
}

/// Two channels that were recorded together and contain sound: finite, not silent, not clipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The direct sound, DC removed. Full scale ±1.0.
    pub(crate) left: Vec<f64>,
    /// The delayed sound, DC removed.
    pub(crate) right: Vec<f64>,
    /// The value of silence on the left channel after the DC was removed.
    pub(crate) left_silence: f64,
    sample_rate_hz: u32,
}

/// Minimum length: a sound, its delay, and some silence around them.
const NEEDED_FRAMES: usize = 256;
/// Full scale, with an allowance for formats of few bits.
const FULL_SCALE: f32 = 0.999;
/// This many consecutive samples at full scale are a flat top.
const FLAT_TOP_FRAMES: usize = 3;
/// Minimum length of silence on the left channel that separates two sounds, seconds.
const PAUSE_S: f64 = 0.002;
/// Below the last bit of any format (-140 dB).
const SILENCE: f64 = 1e-7;

impl Recording {
    /// Creates a recording of two channels, the first direct, the second delayed.
    ///
    /// # Errors
    /// [`LatencyError`]: `NotStereo`, `Lengths`, `TooShort`, `NoRate`, `NotFinite`, `Silent`,
    /// `Clipped`.
    pub fn new(channels: &[impl AsRef<[f32]>], sample_rate_hz: u32) -> Result<Self, LatencyError> {
        let [left, right] = channels else {
            return Err(LatencyError::NotStereo { channels: channels.len() });
        };
        let (left, right) = (left.as_ref(), right.as_ref());
        if left.len() != right.len() {
            return Err(LatencyError::Lengths { left: left.len(), right: right.len() });
        }
        if left.len() < NEEDED_FRAMES {
            return Err(LatencyError::TooShort { frames: left.len(), needed: NEEDED_FRAMES });
        }
        if sample_rate_hz == 0 {
            return Err(LatencyError::NoRate);
        }
        let (left, left_offset) = checked(left, Side::Left)?;
        let (right, _) = checked(right, Side::Right)?;
        Ok(Self { left, right, left_silence: -left_offset, sample_rate_hz })
    }

    /// Hz.
    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// Frames of each channel.
    pub fn frames(&self) -> usize {
        self.left.len()
    }

    /// The sounds of the left channel, with silence of [`PAUSE_S`] or more between them.
    pub(crate) fn sounds(&self) -> Vec<Range<usize>> {
        let highest = self.left.iter().fold(0.0_f64, |peak, sample| peak.max(sample.abs()));
        let is_sound = |sample: &f64| (sample - self.left_silence).abs() > highest / 200.0;
        let pause = ((f64::from(self.sample_rate_hz()) * PAUSE_S) as usize).max(1);
        let mut sounds: Vec<Range<usize>> = Vec::new();
        for (frame, _) in self.left.iter().enumerate().filter(|(_, sample)| is_sound(sample)) {
            match sounds.last_mut() {
                Some(sound) if frame - sound.end < pause => sound.end = frame + 1,
                _ => sounds.push(frame..frame + 1),
            }
        }
        sounds
    }

    /// The range of the left channel from its first to its last sound, unless it contains silence.
    pub(crate) fn dense_part(&self) -> Option<(usize, usize)> {
        match &self.sounds()[..] {
            [sound] if sound.len() as f64 > f64::from(self.sample_rate_hz()) * PAUSE_S => {
                Some((sound.start, sound.end))
            }
            _ => None,
        }
    }
}

/// Returns the samples without DC, and the DC, if they are a usable channel.
fn checked(samples: &[f32], side: Side) -> Result<(Vec<f64>, f64), LatencyError> {
    if let Some(frame) = samples.iter().position(|sample| !sample.is_finite()) {
        return Err(LatencyError::NotFinite { side, frame });
    }
    let is_flat_top = |stretch: &[f32]| {
        stretch.iter().all(|sample| *sample >= FULL_SCALE)
            || stretch.iter().all(|sample| *sample <= -FULL_SCALE)
    };
    if let Some(frame) = samples.windows(FLAT_TOP_FRAMES).position(is_flat_top) {
        return Err(LatencyError::Clipped { side, frame });
    }
    let offset = samples.iter().copied().map(f64::from).sum::<f64>() / samples.len() as f64;
    let samples: Vec<f64> = samples.iter().map(|sample| f64::from(*sample) - offset).collect();
    if samples.iter().all(|sample| sample.abs() < SILENCE) {
        return Err(LatencyError::Silent { side });
    }
    Ok((samples, offset))
}
