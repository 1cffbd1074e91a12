//! From the frames of one device to those of another, in step: pure. Frames and published times go
//! in, and out come frames, or what to do so that they are in step again.

use client::stream::Timing;

use crate::resampler::{Fixed, Resampler};
use crate::steering::Steering;

/// Frames that are resampled at a time.
pub(super) const CHUNK: usize = 64;
/// An error beyond this is no drift of clocks: frames were lost. As long as a fade of a stream.
const MARGIN_NS: f64 = 5e6;
/// Frames in which the sound returns after some were left out.
const FADE_FRAMES: usize = 256;

/// Two devices, and what goes from one to the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AlignmentShape {
    pub(super) channels: usize,
    /// Rate of the device where the frames were heard, Hz.
    pub(super) source_hz: u32,
    /// Rate of the device that plays them, Hz.
    pub(super) sink_hz: u32,
    /// Time from when a frame is heard at the source until it is heard at the sink, ns.
    pub(super) latency_ns: u64,
}

/// What a step has led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// This many frames are to be played: [`Alignment::output`].
    Play(usize),
    /// The frames would be heard too early: this many frames of silence come first.
    Silence(u64),
    /// The frames would be heard too late: this many of the source, from the first on, are left
    /// out.
    Skip(u64),
}

/// Resamples so that each frame is heard at the sink `latency_ns` after it was heard at the source,
/// by the times that both devices publish.
#[derive(Debug)]
pub(super) struct Alignment {
    shape: AlignmentShape,
    resampler: Resampler,
    steering: Steering,
    is_locked: bool,
    /// How often it was aligned.
    locks: u64,
    /// Frames until the sound is as loud as it was.
    fade_left: usize,
    made: usize,
}

impl Alignment {
    /// Allocates all that it needs.
    ///
    /// # Errors
    /// If the rates cannot be converted into each other.
    pub(super) fn new(shape: AlignmentShape) -> Result<Self, String> {
        let AlignmentShape { channels, source_hz, sink_hz, .. } = shape;
        let (from, to) = (f64::from(source_hz), f64::from(sink_hz));
        Ok(Self {
            shape,
            resampler: Resampler::new(channels, from, to, CHUNK, Fixed::Input)?,
            steering: Steering::new(to),
            is_locked: false,
            locks: 0,
            fade_left: 0,
            made: 0,
        })
    }

    /// Aligns again with the next step: frames were lost, or the sound begins.
    pub(super) fn unlock(&mut self) {
        self.is_locked = false;
    }

    /// Returns how often it was aligned.
    pub(super) fn locks(&self) -> u64 {
        self.locks
    }

    /// Returns the most frames that a step makes.
    pub(super) fn most_frames(&self) -> usize {
        self.resampler.output.len() / self.shape.channels.max(1)
    }

    /// Returns room for a channel of the next [`CHUNK`] frames.
    pub(super) fn input(&mut self, channel: usize) -> &mut [f32] {
        self.resampler.input.get_mut(channel * CHUNK..(channel + 1) * CHUNK).unwrap_or_default()
    }

    /// Takes the frames in [`input`](Self::input), the first of which is at position `first` of
    /// the source's stream, where position `next` of the sink's is to be filled. After anything but
    /// [`Step::Play`] they have not been taken.
    pub(super) fn step(&mut self, first: u64, source: Timing, next: u64, sink: Timing) -> Step {
        let begins = !self.is_locked;
        if begins {
            self.resampler.reset();
        }
        let mut early = self.early_frames(first, source, next, sink);
        let frames_of = |ns: f64| ns * f64::from(self.shape.sink_hz) / 1e9;
        if !begins && early.abs() > frames_of(MARGIN_NS) {
            self.is_locked = false;
            self.resampler.reset();
            early = self.early_frames(first, source, next, sink);
        }
        if !self.is_locked {
            let ratio = f64::from(self.shape.sink_hz) / f64::from(self.shape.source_hz);
            // To the nearest frame of the one that is moved; steering does the rest. No more than
            // the latency at a time, whatever a device says of its clock.
            let most = frames_of(self.shape.latency_ns as f64).max(1.0);
            if early >= 0.5 {
                return Step::Silence(early.round().min(most) as u64);
            }
            if early <= -0.5 * ratio.max(1.0) {
                self.fade_left = FADE_FRAMES;
                return Step::Skip((-early / ratio).round().clamp(1.0, most) as u64);
            }
            self.steering.lock();
            (self.is_locked, self.locks) = (true, self.locks + 1);
        }
        let seconds = CHUNK as f64 / f64::from(self.shape.source_hz);
        let more = self.steering.update(early, seconds);
        self.resampler.set_more(more);
        self.made = self.resampler.run();
        self.fade_in();
        Step::Play(self.made)
    }

    /// Returns by how many of the sink's frames the next one would be heard too early.
    fn early_frames(&self, first: u64, source: Timing, next: u64, sink: Timing) -> f64 {
        let frames = |position: u64, from: u64| position as f64 - from as f64;
        let heard =
            (frames(first, source.position) - self.resampler.lag()) * source.frame_ps as f64 / 1e3;
        let plays = frames(next, sink.position) * sink.frame_ps as f64 / 1e3;
        // The difference of two times is exact, unlike the times as floating point.
        let apart =
            i128::from(source.at_ns) + i128::from(self.shape.latency_ns) - i128::from(sink.at_ns);
        let early_ns = apart as f64 + heard - plays;
        early_ns * f64::from(self.shape.sink_hz) / 1e9
    }

    fn fade_in(&mut self) {
        let (left, made) = (self.fade_left, self.made);
        if left == 0 {
            return;
        }
        for plane in self.resampler.output.chunks_exact_mut(made.max(1)).take(self.shape.channels) {
            for (index, sample) in plane.iter_mut().take(left).enumerate() {
                *sample *= 1.0 - (left - index) as f32 / FADE_FRAMES as f32;
            }
        }
        self.fade_left = left.saturating_sub(made);
    }

    /// Returns a channel of the frames that are to be played.
    pub(super) fn output(&self, channel: usize) -> &[f32] {
        let range = channel * self.made..(channel + 1) * self.made;
        self.resampler.output.get(range).unwrap_or_default()
    }

    /// Returns how much faster the sink's clock runs than the source's, relative.
    #[cfg(test)]
    pub(super) fn drift(&self) -> f64 {
        self.steering.drift()
    }
}
