//! Planar samples become a program's bytes.

use dsp::LANES;

use super::{MAX_SAMPLE_BYTES, SampleFormat, g711};
use crate::planes::in_pieces;
use crate::{MAX_CHANNELS, PIECE_FRAMES};

/// Encodes planar samples as interleaved bytes.
#[derive(Debug, Clone)]
pub struct Encoder {
    format: SampleFormat,
    channels: usize,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Returns an encoder for frames of `channels` samples, 1 to [`MAX_CHANNELS`]; other numbers
    /// are taken as the nearest of these. Allocates.
    #[must_use]
    pub fn new(format: SampleFormat, channels: usize) -> Self {
        let channels = channels.clamp(1, MAX_CHANNELS);
        Self { format, channels, bytes: vec![0; PIECE_FRAMES * channels * MAX_SAMPLE_BYTES] }
    }

    /// Returns the bytes of a frame.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.channels * self.format.bytes_per_sample()
    }

    /// Encodes frames, a slice for each channel, and passes on their bytes in pieces of at most
    /// [`PIECE_FRAMES`] frames. The shortest slice counts; without the right number of slices
    /// nothing is encoded.
    pub fn push(&mut self, planes: &[&[f32]], mut emit: impl FnMut(&[u8])) {
        if planes.len() != self.channels {
            return;
        }
        in_pieces(planes, PIECE_FRAMES, &mut |piece| emit(self.encode(piece)));
    }

    /// Encodes as many frames as a piece has at most.
    fn encode(&mut self, planes: &[&[f32]]) -> &[u8] {
        let frames = planes.first().map_or(0, |plane| plane.len());
        let length = frames * self.frame_bytes();
        let bytes = &mut self.bytes[..length];
        match self.format {
            SampleFormat::U8 => each(planes, bytes, quantise_8),
            SampleFormat::ALaw => each(planes, bytes, g711::a_law),
            SampleFormat::MuLaw => each(planes, bytes, g711::mu_law),
            SampleFormat::Linear(format) => encode_linear(format, planes, bytes),
        }
        &self.bytes[..length]
    }
}

/// Encodes formats of one byte for each sample.
fn each(planes: &[&[f32]], bytes: &mut [u8], code: impl Fn(f32) -> u8) {
    for (channel, plane) in planes.iter().enumerate() {
        let codes = bytes.iter_mut().skip(channel).step_by(planes.len());
        for (byte, sample) in codes.zip(*plane) {
            *byte = code(*sample);
        }
    }
}

/// Rounds to the nearest of 256 values, ties to even. NaN becomes silence.
fn quantise_8(sample: f32) -> u8 {
    let sample = if sample.is_nan() { 0.0 } else { sample };
    // The cast clips.
    ((sample * 128.0).round_ties_even() + 128.0) as u8
}

fn encode_linear(format: dsp::Format, planes: &[&[f32]], bytes: &mut [u8]) {
    let channels = planes.len();
    let (groups, rest) = planes.as_chunks::<LANES>();
    for (number, group) in groups.iter().enumerate() {
        dsp::interleave(format, *group, bytes, number * LANES, channels);
    }
    for (channel, plane) in (groups.len() * LANES..).zip(rest) {
        dsp::encode(format, plane, bytes, channel, channels);
    }
}
