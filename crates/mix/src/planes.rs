//! Samples of all channels of a device, in private memory.

/// Planar samples with room for a number of frames that is fixed when they are created.
#[derive(Debug, Clone)]
pub struct Planes {
    channels: Vec<Vec<f32>>,
    frames: usize,
}

impl Planes {
    /// Returns silence of no frames, with room for `capacity_frames`. Not for a device's thread.
    #[must_use]
    pub fn new(channels: usize, capacity_frames: usize) -> Self {
        let mut plane = vec![1.0; capacity_frames];
        // Written once, so that no page of it is touched for the first time later.
        plane.fill(0.0);
        Self { channels: vec![plane; channels], frames: 0 }
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Returns the number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Makes it this many frames, or as many as it has room for, whatever is in them. Thread:
    /// cycle.
    pub fn resize(&mut self, frames: usize) {
        self.frames = frames.min(self.channels.first().map_or(frames, Vec::len));
    }

    /// Makes it silence of this many frames, or of as many as it has room for. Thread: cycle.
    pub fn silence(&mut self, frames: usize) {
        self.resize(frames);
        let frames = self.frames;
        self.channels.iter_mut().for_each(|plane| dsp::silence(&mut plane[..frames]));
    }

    /// Returns whether every sample is zero. Thread: cycle.
    #[must_use]
    pub fn are_silent(&self) -> bool {
        let channels = self.channels.iter();
        channels.flat_map(|plane| &plane[..self.frames]).all(|sample| *sample == 0.0)
    }

    /// Returns the samples of a channel; none if there is no such channel. Thread: cycle.
    #[must_use]
    pub fn channel(&self, channel: usize) -> &[f32] {
        self.channels.get(channel).map_or(&[], |plane| &plane[..self.frames])
    }

    /// Returns the samples of a channel; none if there is no such channel. Thread: cycle.
    pub fn channel_mut(&mut self, channel: usize) -> &mut [f32] {
        let frames = self.frames;
        self.channels.get_mut(channel).map_or(&mut [], |plane| &mut plane[..frames])
    }
}
