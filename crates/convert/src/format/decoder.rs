//! A program's bytes become planar samples.

use dsp::LANES;

use super::{MAX_SAMPLE_BYTES, SampleFormat, g711};
use crate::planes::{Emit, Planes};
use crate::{MAX_CHANNELS, PIECE_FRAMES};

/// What each code of an eight-bit format stands for.
static U8: [f32; 256] = u8_table();
static A_LAW: [f32; 256] = g711::a_law_table();
static MU_LAW: [f32; 256] = g711::mu_law_table();

/// Full scale of 16 bits is 1. A power of two: no bit is rounded.
const SCALE_16: f32 = 1.0 / 32_768.0;

const fn u8_table() -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = (code as f32 - 128.0) / 128.0;
        code += 1;
    }
    table
}

/// Decodes interleaved bytes that come in pieces of any length.
#[derive(Debug, Clone)]
pub struct Decoder {
    format: SampleFormat,
    channels: usize,
    planes: Planes,
    /// The first bytes of a frame of which the rest has not come.
    partial: [u8; MAX_CHANNELS * MAX_SAMPLE_BYTES],
    partial_bytes: usize,
}

impl Decoder {
    /// Returns a decoder for frames of `channels` samples, 1 to [`MAX_CHANNELS`]; other numbers are
    /// taken as the nearest of these. Allocates.
    #[must_use]
    pub fn new(format: SampleFormat, channels: usize) -> Self {
        let channels = channels.clamp(1, MAX_CHANNELS);
        Self {
            format,
            channels,
            planes: Planes::new(channels, PIECE_FRAMES),
            partial: [0; MAX_CHANNELS * MAX_SAMPLE_BYTES],
            partial_bytes: 0,
        }
    }

    /// Returns the format of the samples.
    #[must_use]
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// Returns the bytes of a frame.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.channels * self.format.bytes_per_sample()
    }

    /// Returns the bytes of an incomplete frame that wait for the rest of it.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        &self.partial[..self.partial_bytes]
    }

    /// Decodes bytes, and passes on the frames that are complete, in pieces of at most
    /// [`PIECE_FRAMES`]: a slice for each channel. Bytes of an incomplete frame are kept for the
    /// next call.
    pub fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(&[&[f32]])) {
        let frame_bytes = self.frame_bytes();
        if self.partial_bytes > 0 {
            let missing = &mut self.partial[self.partial_bytes..frame_bytes];
            let (taken, rest) = bytes.split_at(missing.len().min(bytes.len()));
            missing[..taken.len()].copy_from_slice(taken);
            self.partial_bytes += taken.len();
            bytes = rest;
            if self.partial_bytes < frame_bytes {
                return;
            }
            self.partial_bytes = 0;
            let frame = self.partial;
            self.decode(&frame[..frame_bytes], &mut emit);
        }
        let (whole, partial) = bytes.split_at(bytes.len() / frame_bytes * frame_bytes);
        for piece in whole.chunks(PIECE_FRAMES * frame_bytes) {
            self.decode(piece, &mut emit);
        }
        self.partial[..partial.len()].copy_from_slice(partial);
        self.partial_bytes = partial.len();
    }

    /// Forgets the bytes of an incomplete frame.
    pub fn reset(&mut self) {
        self.partial_bytes = 0;
    }

    /// Decodes whole frames where they are to be: into `planes`, a slice for each channel, as many
    /// as have room there. Returns how many bytes that took; none while an incomplete frame waits
    /// for the rest of it.
    pub fn decode_into(&self, bytes: &[u8], planes: &mut [&mut [f32]]) -> usize {
        if planes.len() != self.channels || self.partial_bytes > 0 {
            return 0;
        }
        let room = planes.iter().map(|plane| plane.len()).min().unwrap_or(0);
        let frames = (bytes.len() / self.frame_bytes()).min(room);
        let bytes = &bytes[..frames * self.frame_bytes()];
        let planes = planes.iter_mut().map(|plane| &mut plane[..frames]);
        decode(self.format, self.channels, bytes, planes);
        bytes.len()
    }

    /// Decodes whole frames, as many as a piece has at most.
    fn decode(&mut self, bytes: &[u8], emit: Emit<'_>) {
        let frames = bytes.len() / self.frame_bytes();
        let planes = self.planes.iter_mut().map(|plane| &mut plane[..frames]);
        decode(self.format, self.channels, bytes, planes);
        self.planes.emit(0, frames, emit);
    }
}

/// Decodes whole frames into a slice of as many samples for each of their channels.
fn decode<'a>(
    format: SampleFormat,
    channels: usize,
    bytes: &[u8],
    planes: impl Iterator<Item = &'a mut [f32]>,
) {
    match format {
        SampleFormat::U8 => look_up(&U8, channels, bytes, planes),
        SampleFormat::ALaw => look_up(&A_LAW, channels, bytes, planes),
        SampleFormat::MuLaw => look_up(&MU_LAW, channels, bytes, planes),
        SampleFormat::Linear(dsp::Format::S16Le) if channels == 2 => {
            decode_stereo_16(bytes, planes);
        }
        SampleFormat::Linear(format) => decode_linear(format, channels, bytes, planes),
    }
}

fn look_up<'a>(
    table: &[f32; 256],
    channels: usize,
    bytes: &[u8],
    planes: impl Iterator<Item = &'a mut [f32]>,
) {
    for (channel, plane) in planes.enumerate() {
        let codes = bytes.iter().skip(channel).step_by(channels);
        for (sample, code) in plane.iter_mut().zip(codes) {
            *sample = table[usize::from(*code)];
        }
    }
}

/// Decodes what most programs send: both samples of a frame are taken from one word, which
/// vectorises, unlike one channel of several.
fn decode_stereo_16<'a>(bytes: &[u8], mut planes: impl Iterator<Item = &'a mut [f32]>) {
    let (Some(left), Some(right)) = (planes.next(), planes.next()) else { return };
    let frames = bytes.as_chunks::<4>().0;
    for ((left, right), frame) in left.iter_mut().zip(right).zip(frames) {
        let both = i32::from_le_bytes(*frame);
        *left = ((both << 16) >> 16) as f32 * SCALE_16;
        *right = (both >> 16) as f32 * SCALE_16;
    }
}

fn decode_linear<'a>(
    format: dsp::Format,
    channels: usize,
    bytes: &[u8],
    mut planes: impl Iterator<Item = &'a mut [f32]>,
) {
    let mut first = 0;
    while first + LANES <= channels {
        let group = std::array::from_fn(|_| planes.next().unwrap_or_default());
        dsp::deinterleave(format, bytes, group, first, channels);
        first += LANES;
    }
    for (channel, plane) in (first..).zip(planes) {
        dsp::decode(format, bytes, plane, channel, channels);
    }
}
