//! Conversion of eight adjacent channels of interleaved frames at a time. Converting one channel at
//! a time would touch the bytes of all channels for each of them.

use super::convert::{
    Decoding, Encoding, bytes, decode, decode_by, encode, encode_by, pack, unpacked, word,
};
use crate::simd::transposed;
use crate::{Format, LANES};

/// Samples of eight channels of eight frames, in the order in which they are stored.
type Tile = [[u32; LANES]; LANES];

/// Converts whole tiles.
pub(crate) trait Tiles {
    fn weave(format: Format, weave: Weave<'_>);
    fn unweave(format: Format, unweave: Unweave<'_, '_>);
}

/// Converts tiles with the instructions that every processor has.
pub(crate) struct Baseline;

impl Tiles for Baseline {
    #[inline(always)]
    fn weave(format: Format, weave: Weave<'_>) {
        encode_by(format, weave);
    }

    #[inline(always)]
    fn unweave(format: Format, unweave: Unweave<'_, '_>) {
        decode_by(format, unweave);
    }
}

#[inline(always)]
pub(crate) fn interleave<T: Tiles>(
    format: Format,
    from: [&[f32]; LANES],
    into: &mut [u8],
    first: usize,
    channels: usize,
) {
    let frame_bytes = (format.bytes_per_sample() * channels).max(1);
    let frames = from.iter().map(|plane| plane.len()).fold(into.len() / frame_bytes, usize::min);
    if channels < first.saturating_add(LANES) {
        return;
    }
    let whole = frames / LANES * LANES;
    let (tiles, rest) = into.split_at_mut(whole * frame_bytes);
    T::weave(format, Weave { from, into: tiles, first, channels });
    for (lane, plane) in from.into_iter().enumerate() {
        encode(format, &plane[whole..frames], rest, first + lane, channels);
    }
}

#[inline(always)]
pub(crate) fn deinterleave<T: Tiles>(
    format: Format,
    source: &[u8],
    into: [&mut [f32]; LANES],
    first: usize,
    channels: usize,
) {
    let frame_bytes = (format.bytes_per_sample() * channels).max(1);
    let frames = into.iter().map(|plane| plane.len()).fold(source.len() / frame_bytes, usize::min);
    if channels < first.saturating_add(LANES) {
        return;
    }
    let whole = frames / LANES * LANES;
    let (tiles, rest) = source.split_at(whole * frame_bytes);
    let mut into = into;
    T::unweave(format, Unweave { source: tiles, into: &mut into, first, channels });
    for (lane, plane) in into.into_iter().enumerate() {
        decode(format, rest, &mut plane[whole..frames], first + lane, channels);
    }
}

/// Returns the number of samples in a tile, in a form that the compiler cannot evaluate: it
/// vectorises a loop, but makes bad code of an unrolled one.
#[inline(always)]
fn samples_in_tile(channels: usize) -> usize {
    LANES * LANES.min(channels)
}

/// Writes tiles of `from` to the channels from `first` on of the frames of `into`. Their number is
/// a multiple of a tile's.
pub(crate) struct Weave<'a> {
    pub(crate) from: [&'a [f32]; LANES],
    pub(crate) into: &'a mut [u8],
    pub(crate) first: usize,
    pub(crate) channels: usize,
}

impl Encoding for Weave<'_> {
    #[inline(always)]
    fn run<const BYTES: usize>(self, to_bytes: impl Fn(f32) -> [u8; BYTES]) {
        let (slots, _) = self.into.as_chunks_mut::<BYTES>();
        let planes = self.from.map(|plane| plane.as_chunks::<LANES>().0);
        let count = samples_in_tile(self.channels);
        for (index, frames) in slots.chunks_exact_mut(LANES * self.channels).enumerate() {
            let samples = planes.map(|plane| plane[index]);
            let mut tile: Tile = [[0; LANES]; LANES];
            let words = tile.as_flattened_mut()[..count].iter_mut();
            for (word_of, sample) in words.zip(&samples.as_flattened()[..count]) {
                *word_of = word(to_bytes(*sample));
            }
            for (frame, row) in frames.chunks_exact_mut(self.channels).zip(transposed(tile)) {
                pack(row, &mut frame[self.first..][..LANES]);
            }
        }
    }
}

/// Reads tiles of `into` from the channels from `first` on of the frames of `source`. Their number
/// is a multiple of a tile's.
pub(crate) struct Unweave<'a, 'b> {
    pub(crate) source: &'a [u8],
    pub(crate) into: &'a mut [&'b mut [f32]; LANES],
    pub(crate) first: usize,
    pub(crate) channels: usize,
}

impl Decoding for Unweave<'_, '_> {
    #[inline(always)]
    fn run<const BYTES: usize>(self, from_bytes: impl Fn([u8; BYTES]) -> f32) {
        let (slots, _) = self.source.as_chunks::<BYTES>();
        let count = samples_in_tile(self.channels);
        for (index, frames) in slots.chunks_exact(LANES * self.channels).enumerate() {
            let mut rows: Tile = [[0; LANES]; LANES];
            for (row, frame) in rows.iter_mut().zip(frames.chunks_exact(self.channels)) {
                *row = unpacked(&frame[self.first..][..LANES]);
            }
            let tile = transposed(rows);
            let mut samples = [[0.0; LANES]; LANES];
            for (sample, word) in
                samples.as_flattened_mut()[..count].iter_mut().zip(&tile.as_flattened()[..count])
            {
                *sample = from_bytes(bytes(*word));
            }
            for (plane, samples) in self.into.iter_mut().zip(samples) {
                plane[index * LANES..][..LANES].copy_from_slice(&samples);
            }
        }
    }
}
