//! What was played while something was captured, frame by frame: pure. Without it, an echo could
//! only be found by searching; with it, what is left to find is the room.

use client::stream::Timing;

use super::alignment::{Alignment, AlignmentShape, CHUNK, Step};
use super::frames::Frames;
use super::mix::Mix;
use super::options::LinkMix;

/// How far the reference leads its echo, ns, besides the time that sound takes to the microphone.
/// Greater than the error of the times that two devices publish.
pub(super) const EARLIER_NS: u64 = 5_000_000;
/// How much of it is kept, seconds.
const KEPT_S: u32 = 1;

/// Two devices, and what was played on one while the other captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReferenceShape {
    /// From the channels that were played to those that were captured.
    pub(super) mix: LinkMix,
    /// Rate of the device that was played on, Hz.
    pub(super) far_hz: u32,
    /// Rate of the device that what was captured is played on, Hz.
    pub(super) sink_hz: u32,
    /// From when a frame is played until it is there that its echo is heard, ns.
    pub(super) later_ns: u64,
}

/// Frames that were played, by the position of the sink at which their echo is.
pub(super) struct Reference {
    alignment: Alignment,
    mix: Mix,
    channels: usize,
    /// What was played, by the position in the recorded stream.
    played: Frames,
    /// What was played, by the position in the sink.
    aligned: Frames,
    most_played: usize,
    most_aligned: usize,
}

impl Reference {
    /// Allocates what it needs.
    ///
    /// # Errors
    /// If the rates cannot be converted into each other.
    pub(super) fn new(shape: ReferenceShape) -> anyhow::Result<Self> {
        let ReferenceShape { mix, far_hz, sink_hz, later_ns } = shape;
        let channels = mix.from.channels();
        let alignment = Alignment::new(AlignmentShape {
            channels,
            source_hz: far_hz,
            sink_hz,
            latency_ns: later_ns.saturating_sub(EARLIER_NS),
        });
        let alignment = alignment.map_err(anyhow::Error::msg)?;
        let frames = |rate_hz: u32| usize::try_from(rate_hz * KEPT_S);
        Ok(Self {
            mix: Mix::new(mix.matrix(), alignment.most_frames()),
            alignment,
            channels,
            played: Frames::new(channels),
            aligned: Frames::new(mix.to.channels()),
            most_played: frames(far_hz)?,
            most_aligned: frames(sink_hz)?,
        })
    }

    /// Aligns again: frames were lost, or the sound begins.
    pub(super) fn unlock(&mut self) {
        self.alignment.unlock();
    }

    /// Takes frames that were played, from `position` on.
    pub(super) fn push(&mut self, position: u64, planes: &[&[f32]]) {
        if position != self.played.first() + self.played.len() as u64 {
            self.unlock();
        }
        self.played.push(position, planes);
        if self.played.keep(self.most_played) {
            self.unlock();
        }
    }

    /// Finds out what of them belongs to which position of the sink, of which `next` is to be
    /// filled.
    pub(super) fn align(&mut self, far: Timing, next: u64, sink: Timing) {
        if far.frame_ps == 0 || sink.frame_ps == 0 {
            return;
        }
        while self.played.len() >= CHUNK && self.aligned.len() < self.most_aligned {
            for channel in 0..self.channels {
                self.played.copy(channel, self.alignment.input(channel));
            }
            let end = self.aligned.first() + self.aligned.len() as u64;
            if end < next {
                // Nothing was played for some time.
                self.unlock();
            }
            let at = end.max(next);
            match self.alignment.step(self.played.first(), far, at, sink) {
                Step::Play(_) => {
                    self.played.skip(CHUNK as u64);
                    let all = 0..self.channels;
                    let planes: Vec<&[f32]> =
                        all.map(|channel| self.alignment.output(channel)).collect();
                    self.aligned.push(at, &self.mix.mix(&planes));
                }
                Step::Silence(frames) => {
                    self.aligned.push(at, &[]);
                    let most = frames.min(self.most_aligned as u64);
                    self.aligned.push_silence(most as usize);
                }
                Step::Skip(frames) => self.played.skip(frames),
            }
        }
    }

    /// Copies what was played for the frames from position `at` of the sink on, silence where that
    /// is nothing. What is before is forgotten.
    pub(super) fn take(&mut self, at: u64, into: &mut [Vec<f32>]) {
        self.aligned.skip(at.saturating_sub(self.aligned.first()));
        let later = self.aligned.first().saturating_sub(at);
        for (channel, plane) in into.iter_mut().enumerate() {
            plane.fill(0.0);
            let later = usize::try_from(later).unwrap_or(usize::MAX).min(plane.len());
            self.aligned.copy(channel, &mut plane[later..]);
        }
    }
}
