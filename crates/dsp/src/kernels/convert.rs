//! Conversion between `f32` and the formats of devices, one channel of an interleaved buffer at a
//! time.

use core::array;

use crate::simd::{self, truncated};
use crate::{Format, LANES};

/// `2^23`: a smaller positive number added to it keeps no bits for a fraction, so the sum is
/// rounded to an integer (nearest, ties to even).
const ROUND: f32 = 8_388_608.0;
/// `1.5 * 2^23`: rounds numbers of either sign below `2^22` in the same way, and leaves the
/// integer's two's complement in the low bits of the sum.
const ROUND_SINGLE: f32 = 12_582_912.0;
/// Samples that are converted in one array before they are scattered, or after they were gathered,
/// so that the conversion vectorises.
const BLOCK: usize = 32;
/// Samples of three bytes that are converted by way of an array of words.
const PACKED_BLOCK: usize = 128;

/// Applies an operation to a format's samples, given how one of them is encoded.
pub(super) trait Encoding {
    fn run<const BYTES: usize>(self, to_bytes: impl Fn(f32) -> [u8; BYTES]);
}

/// Applies an operation to a format's samples, given how one of them is decoded.
pub(super) trait Decoding {
    fn run<const BYTES: usize>(self, from_bytes: impl Fn([u8; BYTES]) -> f32);
}

#[inline(always)]
pub(super) fn encode_by(format: Format, encoding: impl Encoding) {
    match format {
        Format::S16Le => encoding.run(|x| quantise_16(x).to_le_bytes()),
        Format::S16Be => encoding.run(|x| quantise_16(x).to_be_bytes()),
        Format::S24Le => encoding.run(|x| quantise::<24>(x).to_le_bytes()),
        Format::S24Be => encoding.run(|x| quantise::<24>(x).to_be_bytes()),
        Format::S24PackedLe => encoding.run(|x| {
            let [low, middle, high, _] = quantise::<24>(x).to_le_bytes();
            [low, middle, high]
        }),
        Format::S24PackedBe => encoding.run(|x| {
            let [_, high, middle, low] = quantise::<24>(x).to_be_bytes();
            [high, middle, low]
        }),
        Format::S32Le => encoding.run(|x| quantise::<32>(x).to_le_bytes()),
        Format::S32Be => encoding.run(|x| quantise::<32>(x).to_be_bytes()),
        Format::FloatLe => encoding.run(f32::to_le_bytes),
        Format::FloatBe => encoding.run(f32::to_be_bytes),
    }
}

#[inline(always)]
pub(super) fn decode_by(format: Format, decoding: impl Decoding) {
    match format {
        Format::S16Le => decoding.run(|b| scale::<16>(i16::from_le_bytes(b).into())),
        Format::S16Be => decoding.run(|b| scale::<16>(i16::from_be_bytes(b).into())),
        Format::S24Le => decoding.run(|b| scale::<24>(extend(u32::from_le_bytes(b)))),
        Format::S24Be => decoding.run(|b| scale::<24>(extend(u32::from_be_bytes(b)))),
        Format::S24PackedLe => decoding.run(|[low, middle, high]| {
            scale::<24>(extend(u32::from_le_bytes([low, middle, high, 0])))
        }),
        Format::S24PackedBe => decoding.run(|[high, middle, low]| {
            scale::<24>(extend(u32::from_be_bytes([0, high, middle, low])))
        }),
        Format::S32Le => decoding.run(|b| scale::<32>(i32::from_le_bytes(b))),
        Format::S32Be => decoding.run(|b| scale::<32>(i32::from_be_bytes(b))),
        Format::FloatLe => decoding.run(f32::from_le_bytes),
        Format::FloatBe => decoding.run(f32::from_be_bytes),
    }
}

#[inline(always)]
pub(crate) fn encode(
    format: Format,
    source: &[f32],
    into: &mut [u8],
    channel: usize,
    channels: usize,
) {
    encode_by(format, Scatter { source, into, channel, channels });
}

#[inline(always)]
pub(crate) fn decode(
    format: Format,
    source: &[u8],
    into: &mut [f32],
    channel: usize,
    channels: usize,
) {
    decode_by(format, Gather { source, into, channel, channels });
}

/// Returns the integer of `BITS` bits for `sample`; see [`Format`].
#[inline(always)]
fn quantise<const BITS: u32>(sample: f32) -> i32 {
    let full_scale = (1_u64 << (BITS - 1)) as f32;
    // Exact, since the factor is a power of two.
    let scaled = sample * full_scale;
    let round = ROUND.copysign(scaled);
    // Numbers of at least `ROUND` are integers already.
    let rounded = if scaled.abs() < ROUND { scaled + round - round } else { scaled };
    // There is no single-precision number between the largest integer of 32 bits and full scale.
    if BITS == 32 && rounded >= full_scale { i32::MAX } else { truncated::<BITS>(rounded) }
}

/// Quantises like [`quantise`], to 16 bits, without a cast.
#[inline(always)]
fn quantise_16(sample: f32) -> i16 {
    const FULL_SCALE: f32 = 32_768.0;
    let scaled = if sample.is_nan() { 0.0 } else { sample * FULL_SCALE };
    let scaled = if scaled < -FULL_SCALE { -FULL_SCALE } else { scaled };
    let scaled = if scaled > FULL_SCALE - 1.0 { FULL_SCALE - 1.0 } else { scaled };
    (scaled + ROUND_SINGLE).to_bits() as i16
}

/// Returns the sample for an integer of `BITS` bits. Exact up to 25 bits, since the factor is a
/// power of two.
#[inline(always)]
fn scale<const BITS: u32>(value: i32) -> f32 {
    value as f32 * (1.0 / (1_u64 << (BITS - 1)) as f32)
}

/// Sign-extends the low 24 bits, whatever the high 8 contain.
#[inline(always)]
fn extend(low_24_bits: u32) -> i32 {
    (low_24_bits << 8) as i32 >> 8
}

/// Writes each sample of `source` to `channel` of a frame of `into`.
struct Scatter<'a> {
    source: &'a [f32],
    into: &'a mut [u8],
    channel: usize,
    channels: usize,
}

impl Encoding for Scatter<'_> {
    #[inline(always)]
    fn run<const BYTES: usize>(self, to_bytes: impl Fn(f32) -> [u8; BYTES]) {
        let Self { source, into, channel, channels } = self;
        let (slots, _) = into.as_chunks_mut::<BYTES>();
        if channels == 1 && channel == 0 {
            scatter_contiguous(source, slots, to_bytes);
        } else if channel < channels {
            let mut frames = slots.chunks_exact_mut(channels);
            let (blocks, rest) = source.as_chunks::<BLOCK>();
            for block in blocks {
                let mut converted = [[0; BYTES]; BLOCK];
                for (bytes, sample) in converted.iter_mut().zip(block) {
                    *bytes = to_bytes(*sample);
                }
                // The bytes come first: `zip` takes a frame before it notices that its second
                // iterator has ended.
                for (bytes, frame) in converted.iter().zip(frames.by_ref()) {
                    frame[channel] = *bytes;
                }
            }
            for (sample, frame) in rest.iter().zip(frames) {
                frame[channel] = to_bytes(*sample);
            }
        }
    }
}

#[inline(always)]
fn scatter_contiguous<const BYTES: usize>(
    source: &[f32],
    slots: &mut [[u8; BYTES]],
    to_bytes: impl Fn(f32) -> [u8; BYTES],
) {
    if BYTES != 3 {
        // Vectorises.
        for (slot, sample) in slots.iter_mut().zip(source) {
            *slot = to_bytes(*sample);
        }
        return;
    }
    for (slots, samples) in slots.chunks_mut(PACKED_BLOCK).zip(source.chunks(PACKED_BLOCK)) {
        let length = slots.len().min(samples.len());
        let mut words = [0; PACKED_BLOCK];
        for (converted, sample) in words.iter_mut().zip(&samples[..length]) {
            *converted = word(to_bytes(*sample));
        }
        let (groups, rest) = slots[..length].as_chunks_mut::<LANES>();
        for (slots, row) in groups.iter_mut().zip(words.as_chunks().0) {
            pack(*row, slots);
        }
        for (slot, word) in rest.iter_mut().zip(&words[length / LANES * LANES..]) {
            *slot = bytes(*word);
        }
    }
}

/// Reads each sample of `into` from `channel` of a frame of `source`.
struct Gather<'a> {
    source: &'a [u8],
    into: &'a mut [f32],
    channel: usize,
    channels: usize,
}

impl Decoding for Gather<'_> {
    #[inline(always)]
    fn run<const BYTES: usize>(self, from_bytes: impl Fn([u8; BYTES]) -> f32) {
        let Self { source, into, channel, channels } = self;
        let (slots, _) = source.as_chunks::<BYTES>();
        if channels == 1 && channel == 0 {
            gather_contiguous(slots, into, from_bytes);
        } else if channel < channels {
            for (sample, frame) in into.iter_mut().zip(slots.chunks_exact(channels)) {
                *sample = from_bytes(frame[channel]);
            }
        }
    }
}

#[inline(always)]
fn gather_contiguous<const BYTES: usize>(
    slots: &[[u8; BYTES]],
    into: &mut [f32],
    from_bytes: impl Fn([u8; BYTES]) -> f32,
) {
    if BYTES != 3 {
        // Vectorises.
        for (sample, slot) in into.iter_mut().zip(slots) {
            *sample = from_bytes(*slot);
        }
        return;
    }
    for (samples, slots) in into.chunks_mut(PACKED_BLOCK).zip(slots.chunks(PACKED_BLOCK)) {
        let mut words = [0; PACKED_BLOCK];
        let (groups, rest) = slots.as_chunks::<LANES>();
        for (row, slots) in words.as_chunks_mut().0.iter_mut().zip(groups) {
            *row = unpacked(slots);
        }
        for (word_of, slot) in words[groups.len() * LANES..].iter_mut().zip(rest) {
            *word_of = word(*slot);
        }
        for (sample, word) in samples.iter_mut().zip(&words[..slots.len()]) {
            *sample = from_bytes(bytes(*word));
        }
    }
}

#[inline(always)]
pub(super) fn word<const BYTES: usize>(bytes: [u8; BYTES]) -> u32 {
    u32::from_le_bytes(array::from_fn(|index| if index < BYTES { bytes[index] } else { 0 }))
}

#[inline(always)]
pub(super) fn bytes<const BYTES: usize>(word: u32) -> [u8; BYTES] {
    let bytes = word.to_le_bytes();
    array::from_fn(|index| bytes[index])
}

/// Writes the low bytes of each word.
#[inline(always)]
pub(super) fn pack<const BYTES: usize>(row: [u32; LANES], slots: &mut [[u8; BYTES]]) {
    if BYTES == 3 {
        let (groups, _) = slots.as_flattened_mut().as_chunks_mut();
        for (group, words) in groups.iter_mut().zip(row.as_chunks().0) {
            simd::pack(*words, group);
        }
    } else {
        for (slot, word) in slots.iter_mut().zip(row) {
            *slot = bytes(word);
        }
    }
}

/// Reads what [`pack`] has written.
#[inline(always)]
pub(super) fn unpacked<const BYTES: usize>(slots: &[[u8; BYTES]]) -> [u32; LANES] {
    let mut row = [0; LANES];
    if BYTES == 3 {
        let (groups, _) = slots.as_flattened().as_chunks();
        for (words, group) in row.as_chunks_mut().0.iter_mut().zip(groups) {
            *words = simd::unpacked(*group);
        }
    } else {
        for (word_of, slot) in row.iter_mut().zip(slots) {
            *word_of = word(*slot);
        }
    }
    row
}
