//! The removal of what loudspeakers play from what microphones capture.

use anyhow::ensure;

use crate::library::speex::{Echo, EchoShape, Preprocessing, Suppression};

/// Full scale of the library's samples.
const FULL_SCALE: f32 = 32_768.0;

/// How echo is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Null,
    /// Removed by libspeexdsp.
    Speex(Speex),
}

/// What libspeexdsp does: the parameters of PulseAudio's method `speex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speex {
    /// The longest echo, ms.
    pub filter_ms: u32,
    /// Keeps the voice at one level. This and what follows is for one channel only.
    pub gain_control: bool,
    /// Makes steady noise quieter.
    pub denoise: bool,
    /// Attenuates the residual echo.
    pub suppress: bool,
    /// How far the residual echo is attenuated, dB below 0; `None`: the library's default.
    pub suppress_db: Option<i32>,
    /// The same while somebody speaks into the microphone.
    pub suppress_active_db: Option<i32>,
}

impl Speex {
    fn preprocessing(&self) -> Option<Preprocessing> {
        let Self { gain_control, denoise, suppress, suppress_db, suppress_active_db, .. } = *self;
        let suppression = suppress
            .then_some(Suppression { silent_db: suppress_db, active_db: suppress_active_db });
        (gain_control || denoise || suppress).then_some(Preprocessing {
            gain_control,
            denoise,
            suppression,
        })
    }
}

/// Removes echo, a block of frames at a time.
#[derive(Debug)]
pub struct Canceller {
    channels: usize,
    block: usize,
    echo: Option<Echo>,
    /// Interleaved.
    near: Vec<i16>,
    far: Vec<i16>,
    out: Vec<i16>,
    /// One channel after the other.
    result: Vec<f32>,
}

impl Canceller {
    /// Prepares for blocks of at most `frame_ms`: as many frames as are a power of two.
    ///
    /// # Errors
    /// The library cannot be loaded; there are other channels than one, and what is for one only.
    pub fn new(
        method: Method,
        frame_ms: u32,
        channels: usize,
        rate_hz: u32,
    ) -> anyhow::Result<Self> {
        let frames = |ms: u32| usize::try_from(u64::from(rate_hz) * u64::from(ms) / 1000);
        let block = power_of_two_within(frames(frame_ms)?);
        let echo = match method {
            Method::Null => None,
            Method::Speex(speex) => {
                let after = speex.preprocessing();
                ensure!(
                    after.is_none() || channels == 1,
                    "agc, denoise and echo_suppress are for one channel, and there are {channels}: \
                     set them to no, or channels to 1"
                );
                let tail = frames(speex.filter_ms)?.max(block);
                Some(Echo::new(EchoShape { channels, block, tail, rate_hz }, after)?)
            }
        };
        let samples = block * channels;
        Ok(Self {
            channels,
            block,
            echo,
            near: vec![0; samples],
            far: vec![0; samples],
            out: vec![0; samples],
            result: vec![0.0; samples],
        })
    }

    /// Returns how many frames a block has.
    #[must_use]
    pub fn block(&self) -> usize {
        self.block
    }

    /// Removes from a block of what was captured what it has of a block that was played at the same
    /// time: a slice for each channel. Returns what is left, one channel after the other. What a
    /// slice lacks of a block is silence.
    pub fn cancel(&mut self, near: &[&[f32]], far: &[&[f32]]) -> &[f32] {
        let (channels, block) = (self.channels, self.block);
        let Some(echo) = &mut self.echo else {
            for (result, near) in self.result.chunks_exact_mut(block).zip(near) {
                let there = near.len().min(block);
                result[..there].copy_from_slice(&near[..there]);
                result[there..].fill(0.0);
            }
            return &self.result;
        };
        interleave(near, channels, &mut self.near);
        interleave(far, channels, &mut self.far);
        echo.cancel(&self.near, &self.far, &mut self.out);
        for (channel, result) in self.result.chunks_exact_mut(block).enumerate() {
            let samples = self.out.iter().skip(channel).step_by(channels);
            let both = result.iter_mut().zip(samples);
            both.for_each(|(result, sample)| *result = f32::from(*sample) / FULL_SCALE);
        }
        &self.result
    }
}

/// The greatest power of two that is no more than `frames`, as PulseAudio's blocks are.
fn power_of_two_within(frames: usize) -> usize {
    1 << frames.max(1).ilog2()
}

fn interleave(planes: &[&[f32]], channels: usize, into: &mut [i16]) {
    into.fill(0);
    for (channel, plane) in planes.iter().take(channels).enumerate() {
        let cells = into.iter_mut().skip(channel).step_by(channels);
        for (cell, sample) in cells.zip(*plane) {
            // A conversion of numbers to integers stays within these, and takes NaN for 0.
            *cell = (sample * FULL_SCALE).round() as i16;
        }
    }
}

#[cfg(test)]
mod tests;
