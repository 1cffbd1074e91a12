//! Conversion between `f32` and the formats of devices, one channel of an interleaved buffer at a time.

use crate::Format;

/// `1.5 * 2^52`: added to a number below `2^51`, it leaves no bits for a fraction, so the sum is rounded to an
/// integer (nearest, ties to even), whose two's complement stands in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// `1.5 * 2^23`: the same in single precision, for numbers below `2^22`.
const ROUND_SINGLE: f32 = 12_582_912.0;
/// Samples that are converted before the first of them is put in its place: side by side, they vectorise.
const BLOCK: usize = 32;

#[inline(always)]
pub(crate) fn encode(format: Format, source: &[f32], into: &mut [u8], channel: usize, channels: usize) {
    match format {
        Format::S16Le => scatter(source, into, channel, channels, |x| quantise_16(x).to_le_bytes()),
        Format::S16Be => scatter(source, into, channel, channels, |x| quantise_16(x).to_be_bytes()),
        Format::S24Le => scatter(source, into, channel, channels, |x| quantise::<24>(x).to_le_bytes()),
        Format::S24Be => scatter(source, into, channel, channels, |x| quantise::<24>(x).to_be_bytes()),
        Format::S24PackedLe => scatter(source, into, channel, channels, |x| {
            let [low, middle, high, _] = quantise::<24>(x).to_le_bytes();
            [low, middle, high]
        }),
        Format::S24PackedBe => scatter(source, into, channel, channels, |x| {
            let [_, high, middle, low] = quantise::<24>(x).to_be_bytes();
            [high, middle, low]
        }),
        Format::S32Le => scatter(source, into, channel, channels, |x| quantise::<32>(x).to_le_bytes()),
        Format::S32Be => scatter(source, into, channel, channels, |x| quantise::<32>(x).to_be_bytes()),
        Format::FloatLe => scatter(source, into, channel, channels, f32::to_le_bytes),
        Format::FloatBe => scatter(source, into, channel, channels, f32::to_be_bytes),
    }
}

#[inline(always)]
pub(crate) fn decode(format: Format, source: &[u8], into: &mut [f32], channel: usize, channels: usize) {
    match format {
        Format::S16Le => {
            gather(source, into, channel, channels, |b| scale::<16>(i16::from_le_bytes(b).into()))
        }
        Format::S16Be => {
            gather(source, into, channel, channels, |b| scale::<16>(i16::from_be_bytes(b).into()))
        }
        Format::S24Le => {
            gather(source, into, channel, channels, |b| scale::<24>(extend(u32::from_le_bytes(b))))
        }
        Format::S24Be => {
            gather(source, into, channel, channels, |b| scale::<24>(extend(u32::from_be_bytes(b))))
        }
        Format::S24PackedLe => gather(source, into, channel, channels, |[low, middle, high]| {
            scale::<24>(extend(u32::from_le_bytes([low, middle, high, 0])))
        }),
        Format::S24PackedBe => gather(source, into, channel, channels, |[high, middle, low]| {
            scale::<24>(extend(u32::from_be_bytes([0, high, middle, low])))
        }),
        Format::S32Le => gather(source, into, channel, channels, |b| scale::<32>(i32::from_le_bytes(b))),
        Format::S32Be => gather(source, into, channel, channels, |b| scale::<32>(i32::from_be_bytes(b))),
        Format::FloatLe => gather(source, into, channel, channels, f32::from_le_bytes),
        Format::FloatBe => gather(source, into, channel, channels, f32::from_be_bytes),
    }
}

/// The integer of `BITS` bits that stands for `sample`; see [`Format`].
#[inline(always)]
fn quantise<const BITS: u32>(sample: f32) -> i32 {
    let full_scale = (1_u64 << (BITS - 1)) as f64;
    let sample = if sample.is_nan() { 0.0 } else { f64::from(sample) };
    let scaled = sample * full_scale;
    // Not `clamp`: these two comparisons are one instruction each.
    let scaled = if scaled < -full_scale { -full_scale } else { scaled };
    let scaled = if scaled > full_scale - 1.0 { full_scale - 1.0 } else { scaled };
    (scaled + ROUND).to_bits() as i32
}

/// As [`quantise`] for 16 bits, for which single precision is enough: twice as many at once.
#[inline(always)]
fn quantise_16(sample: f32) -> i16 {
    const FULL_SCALE: f32 = 32_768.0;
    let scaled = if sample.is_nan() { 0.0 } else { sample * FULL_SCALE };
    let scaled = if scaled < -FULL_SCALE { -FULL_SCALE } else { scaled };
    let scaled = if scaled > FULL_SCALE - 1.0 { FULL_SCALE - 1.0 } else { scaled };
    (scaled + ROUND_SINGLE).to_bits() as i16
}

/// The sample that an integer of `BITS` bits stands for. Exact up to 25 bits: the factor is a power of two.
#[inline(always)]
fn scale<const BITS: u32>(value: i32) -> f32 {
    value as f32 * (1.0 / (1_u64 << (BITS - 1)) as f32)
}

/// Sign-extends the low 24 bits, whatever the high 8 hold.
#[inline(always)]
fn extend(low_24_bits: u32) -> i32 {
    (low_24_bits << 8) as i32 >> 8
}

/// Writes each sample of `source` to `channel` of a frame of `into`.
#[inline(always)]
fn scatter<const BYTES: usize>(
    source: &[f32],
    into: &mut [u8],
    channel: usize,
    channels: usize,
    to_bytes: impl Fn(f32) -> [u8; BYTES],
) {
    let (slots, _) = into.as_chunks_mut::<BYTES>();
    if channels == 1 && channel == 0 {
        // Contiguous: vectorises.
        for (slot, sample) in slots.iter_mut().zip(source) {
            *slot = to_bytes(*sample);
        }
    } else if channel < channels {
        let mut frames = slots.chunks_exact_mut(channels);
        let (blocks, rest) = source.as_chunks::<BLOCK>();
        for block in blocks {
            let mut converted = [[0; BYTES]; BLOCK];
            for (bytes, sample) in converted.iter_mut().zip(block) {
                *bytes = to_bytes(*sample);
            }
            // The bytes first: an iterator that is behind them has given a frame too many when they end.
            for (bytes, frame) in converted.iter().zip(frames.by_ref()) {
                frame[channel] = *bytes;
            }
        }
        for (sample, frame) in rest.iter().zip(frames) {
            frame[channel] = to_bytes(*sample);
        }
    }
}

/// Reads each sample of `into` from `channel` of a frame of `source`.
#[inline(always)]
fn gather<const BYTES: usize>(
    source: &[u8],
    into: &mut [f32],
    channel: usize,
    channels: usize,
    from_bytes: impl Fn([u8; BYTES]) -> f32,
) {
    let (slots, _) = source.as_chunks::<BYTES>();
    if channels == 1 && channel == 0 {
        // Contiguous: vectorises.
        for (sample, slot) in into.iter_mut().zip(slots) {
            *sample = from_bytes(*slot);
        }
    } else if channel < channels {
        for (sample, frame) in into.iter_mut().zip(slots.chunks_exact(channels)) {
            *sample = from_bytes(frame[channel]);
        }
    }
}
