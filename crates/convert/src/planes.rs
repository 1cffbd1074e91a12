//! Planar samples in memory of fixed size.

use crate::MAX_CHANNELS;

/// What receives planar frames: a slice for each channel, all of the same length.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(&[&[f32]]);

/// Room for a number of frames of each channel, allocated once.
#[derive(Debug, Clone)]
pub(crate) struct Planes {
    samples: Vec<f32>,
    channels: usize,
    frames: usize,
}

impl Planes {
    /// Allocates silence.
    pub(crate) fn new(channels: usize, frames: usize) -> Self {
        Self { samples: vec![0.0; channels * frames], channels, frames }
    }

    /// Returns the frames that there is room for.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Returns the samples of all channels, as [`iter`](Self::iter) does.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.samples.chunks_exact_mut(self.frames)
    }

    /// Returns the samples of all channels, one channel after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[f32]> {
        self.samples.chunks_exact(self.frames)
    }

    /// Returns all samples: those of the first channel, then those of the second, and so on.
    pub(crate) fn as_slice(&self) -> &[f32] {
        &self.samples
    }

    /// Returns all samples, as [`as_slice`](Self::as_slice) does.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.samples
    }

    /// Passes the frames from `first` to before `end` on.
    pub(crate) fn emit(&self, first: usize, end: usize, emit: Emit<'_>) {
        let mut views: [&[f32]; MAX_CHANNELS] = [&[]; MAX_CHANNELS];
        for (view, plane) in views.iter_mut().zip(self.iter()) {
            *view = &plane[first..end];
        }
        emit(&views[..self.channels]);
    }
}

/// Passes frames on in pieces of at most `most` frames. The shortest slice counts.
pub(crate) fn in_pieces(planes: &[&[f32]], most: usize, emit: Emit<'_>) {
    let frames = planes.iter().map(|plane| plane.len()).min().unwrap_or(0);
    let mut first = 0;
    while first < frames {
        let end = frames.min(first + most);
        let mut views: [&[f32]; MAX_CHANNELS] = [&[]; MAX_CHANNELS];
        for (view, plane) in views.iter_mut().zip(planes) {
            *view = &plane[first..end];
        }
        emit(&views[..planes.len()]);
        first = end;
    }
}
