//! Frames in a program's own memory, in either of the usual arrangements.

/// Frames to be written.
#[derive(Debug, Clone, Copy)]
pub enum Samples<'a> {
    /// A slice for each channel. The shortest one counts; channels that are left out are silent.
    Planar(&'a [&'a [f32]]),
    /// Frame after frame, each with all channels of the stream. An incomplete frame at the end is
    /// left out.
    Interleaved(&'a [f32]),
}

/// Room for frames to be read.
#[derive(Debug)]
pub enum SamplesMut<'a, 'b> {
    /// A slice for each channel. The shortest one counts; channels that the stream lacks are
    /// silent.
    Planar(&'a mut [&'b mut [f32]]),
    /// Frame after frame, each with all channels of the stream.
    Interleaved(&'a mut [f32]),
}

impl Samples<'_> {
    /// Returns the number of frames, for a stream of `channels` channels.
    pub(super) fn frames(self, channels: u32) -> usize {
        match self {
            Self::Planar(planes) => planes.iter().map(|plane| plane.len()).min().unwrap_or(0),
            Self::Interleaved(samples) => samples.len() / channels as usize,
        }
    }

    /// Copies as many frames of one channel as `into` holds, from frame `first` on.
    pub(super) fn copy(self, channel: u32, channels: u32, first: usize, into: &mut [f32]) {
        match self {
            Self::Planar(planes) => match planes.get(channel as usize) {
                Some(plane) => into.copy_from_slice(&plane[first..first + into.len()]),
                None => into.fill(0.0),
            },
            Self::Interleaved(samples) => {
                let frames = samples.chunks_exact(channels as usize).skip(first);
                for (sample, frame) in into.iter_mut().zip(frames) {
                    *sample = frame[channel as usize];
                }
            }
        }
    }
}

impl SamplesMut<'_, '_> {
    /// Returns the number of frames that there is room for, in a stream of `channels` channels.
    pub(super) fn frames(&self, channels: u32) -> usize {
        match self {
            Self::Planar(planes) => planes.iter().map(|plane| plane.len()).min().unwrap_or(0),
            Self::Interleaved(samples) => samples.len() / channels as usize,
        }
    }

    /// Calls `copy` with each channel's number and room for `frames` frames, which it fills.
    pub(super) fn fill(
        &mut self,
        channels: u32,
        frames: usize,
        copy: impl Fn(u32, usize, &mut [f32]),
    ) {
        match self {
            Self::Planar(planes) => {
                for (channel, plane) in (0..).zip(planes.iter_mut()) {
                    copy(channel, 0, &mut plane[..frames]);
                }
            }
            Self::Interleaved(samples) => {
                let mut block = [0.0; BLOCK_FRAMES];
                let blocks = samples[..frames * channels as usize]
                    .chunks_mut(BLOCK_FRAMES * channels as usize);
                for (number, interleaved) in blocks.enumerate() {
                    let plane = &mut block[..interleaved.len() / channels as usize];
                    for channel in 0..channels {
                        copy(channel, number * BLOCK_FRAMES, plane);
                        let frames = interleaved.chunks_exact_mut(channels as usize);
                        for (frame, sample) in frames.zip(plane.iter()) {
                            frame[channel as usize] = *sample;
                        }
                    }
                }
            }
        }
    }
}

/// Frames that are interleaved at a time.
const BLOCK_FRAMES: usize = 256;
