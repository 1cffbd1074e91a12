//! Two ALSA devices that run together: one records, the other plays.

use alsa::pcm::{IO, IoFormat, PCM, State};
use anyhow::ensure;

use super::CHANNELS;
use crate::command::probe::ProbeSender;

/// After this many xruns without a period in between, the settings do not work.
const XRUNS_IN_A_ROW: u32 = 10;
/// A device without a period for this long has stopped, in ms.
const STALLED_MS: u32 = 10_000;

/// A sample of a device.
pub(super) trait Sample: IoFormat + Default {
    fn of(sample: f32) -> Self;
    fn value(self) -> f32;
}

impl Sample for f32 {
    fn of(sample: f32) -> Self {
        sample
    }
    fn value(self) -> f32 {
        self
    }
}

impl Sample for i32 {
    fn of(sample: f32) -> Self {
        (f64::from(sample) * 2_147_483_648.0).round() as Self
    }
    fn value(self) -> f32 {
        (f64::from(self) / 2_147_483_648.0) as f32
    }
}

impl Sample for i16 {
    fn of(sample: f32) -> Self {
        (sample * 32_768.0).round() as Self
    }
    fn value(self) -> f32 {
        f32::from(self) / 32_768.0
    }
}

/// The two devices while they run.
pub(super) struct Pair<'a> {
    pub(super) playback: &'a PCM,
    pub(super) capture: &'a PCM,
    /// Frames.
    pub(super) period: usize,
    /// Number of periods of the playback device.
    pub(super) periods: u32,
    /// Whether the buffers are accessed as mapped memory.
    pub(super) mapped: bool,
}

impl Pair<'_> {
    /// Runs a measurement to its end. Returns the number of xruns.
    pub(super) fn run_streams<S: Sample>(&self, sender: &mut ProbeSender) -> anyhow::Result<u32> {
        let (playing, recording) =
            (self.playback.io_checked::<S>()?, self.capture.io_checked::<S>()?);
        let mut samples = vec![S::default(); self.period * CHANNELS];
        let (mut received, mut sent) = (vec![0.0; self.period], vec![0.0; self.period]);
        let (mut xruns, mut in_a_row) = (0, 0);
        self.start(&playing)?;
        while !sender.is_over() {
            let moved = self.read(&recording, &mut samples).and_then(|()| {
                received
                    .iter_mut()
                    .zip(samples.chunks(CHANNELS))
                    .for_each(|(received, frame)| *received = frame[0].value());
                sender.cycle(&received, &mut sent);
                for (frame, sent) in samples.chunks_mut(CHANNELS).zip(&sent) {
                    frame.fill(S::default());
                    frame[0] = S::of(*sent);
                }
                self.write(&playing, &samples)
            });
            let Err(error) = moved else {
                in_a_row = 0;
                continue;
            };
            ensure!(self.is_xrun(), "the sound card stopped: {error:#}");
            (xruns, in_a_row) = (xruns + 1, in_a_row + 1);
            ensure!(
                in_a_row < XRUNS_IN_A_ROW,
                "the sound card cannot keep up: use longer or more periods"
            );
            self.start(&playing)?;
        }
        let _ = (self.playback.drop(), self.capture.drop());
        Ok(xruns)
    }

    fn is_xrun(&self) -> bool {
        [self.playback, self.capture].iter().any(|pcm| pcm.state() == State::XRun)
    }

    /// Restarts both devices, with silence in every period of the playback device.
    fn start<S: Sample>(&self, playing: &IO<'_, S>) -> anyhow::Result<()> {
        for pcm in [self.playback, self.capture] {
            // Fails if the device does not run, which is the aim.
            let _ = pcm.drop();
            pcm.prepare()?;
        }
        let silence = vec![S::default(); self.period * CHANNELS];
        for _ in 0..self.periods {
            self.write(playing, &silence)?;
        }
        self.playback.start()?;
        // Linked devices start together.
        if self.capture.state() != State::Running {
            self.capture.start()?;
        }
        Ok(())
    }

    fn write<S: Sample>(&self, playing: &IO<'_, S>, samples: &[S]) -> anyhow::Result<()> {
        let mut written = 0;
        while written < self.period {
            let rest = &samples[written * CHANNELS..];
            written += if self.mapped {
                let room = self.await_frames(self.playback, self.period - written)?;
                playing.mmap(room.min(self.period - written), |memory| {
                    let length = memory.len().min(rest.len());
                    memory[..length].copy_from_slice(&rest[..length]);
                    length / CHANNELS
                })?
            } else {
                playing.writei(rest)?
            };
        }
        Ok(())
    }

    fn read<S: Sample>(&self, recording: &IO<'_, S>, samples: &mut [S]) -> anyhow::Result<()> {
        let mut read = 0;
        while read < self.period {
            let rest = &mut samples[read * CHANNELS..];
            read += if self.mapped {
                let there = self.await_frames(self.capture, self.period - read)?;
                recording.mmap(there.min(self.period - read), |memory| {
                    let length = memory.len().min(rest.len());
                    rest[..length].copy_from_slice(&memory[..length]);
                    length / CHANNELS
                })?
            } else {
                recording.readi(rest)?
            };
        }
        Ok(())
    }

    /// Waits until the device has `frames` to read, or room for them. Returns how many it has.
    fn await_frames(&self, pcm: &PCM, frames: usize) -> anyhow::Result<usize> {
        loop {
            let available = usize::try_from(pcm.avail_update()?)?;
            if available >= frames {
                return Ok(available);
            }
            ensure!(pcm.wait(Some(STALLED_MS))?, "no period in {STALLED_MS} ms");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_every_format_up_to_its_last_bit() {
        for sample in [0.0, 0.5, -0.5, 0.05, -0.05, 0.1] {
            assert_eq!(f32::of(sample).value(), sample);
            assert!((i32::of(sample).value() - sample).abs() < 1e-8);
            assert!((i16::of(sample).value() - sample).abs() <= 0.5 / 32_768.0);
        }
        assert_eq!((i16::of(1.0), i16::of(-1.0)), (i16::MAX, i16::MIN));
    }
}
