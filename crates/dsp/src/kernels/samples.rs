//! Operations on samples in their native format, `f32`.

use crate::simd::PeerSamples;

/// Frames mixed at a time: 4 KiB of `into` stay in the first-level cache while all sources are
/// added.
const BLOCK_FRAMES: usize = 1024;

const MAGNITUDE_MASK: u32 = 0x7fff_ffff;
const EXPONENT_MASK: u32 = 0x7f80_0000;

#[inline(always)]
pub(crate) fn silence(into: &mut [f32]) {
    into.fill(0.0);
}

#[inline(always)]
pub(crate) fn copy(source: PeerSamples<'_>, into: &mut [f32]) {
    let (copied, rest) = into.split_at_mut(source.len().min(into.len()));
    source.zip_into(copied, |_, sample| sample);
    silence(rest);
}

#[inline(always)]
pub(crate) fn add(source: PeerSamples<'_>, into: &mut [f32]) {
    source.zip_into(into, |sum, sample| sum + sample);
}

#[inline(always)]
pub(crate) fn mix(sources: &[PeerSamples<'_>], into: &mut [f32]) {
    let Some((first, others)) = sources.split_first() else {
        return silence(into);
    };
    for (index, block) in into.chunks_mut(BLOCK_FRAMES).enumerate() {
        let start = index * BLOCK_FRAMES;
        copy(first.skipped(start), block);
        for source in others {
            add(source.skipped(start), block);
        }
    }
}

#[inline(always)]
pub(crate) fn gain(into: &mut [f32], factor: f32) {
    for sample in into {
        *sample *= factor;
    }
}

#[inline(always)]
pub(crate) fn scrub(into: &mut [f32]) {
    for sample in into {
        // All exponent bits are set in infinities and NaN. Testing the bits needs no branch.
        let finite = sample.to_bits() & EXPONENT_MASK != EXPONENT_MASK;
        *sample = if finite { *sample } else { 0.0 };
    }
}

#[inline(always)]
pub(crate) fn limited_gain(into: &mut [f32], most: f32, factor: f32) {
    for sample in into {
        let finite = sample.to_bits() & EXPONENT_MASK != EXPONENT_MASK;
        let sound = if finite { *sample } else { 0.0 };
        // Not `clamp`, which panics if `most` is none; each of these is one instruction.
        *sample = sound.max(-most).min(most) * factor;
    }
}

#[inline(always)]
pub(crate) fn peak(samples: &[f32]) -> f32 {
    // Without their sign, floats are ordered like their bits, NaN above infinity. A maximum of
    // integers, unlike one of floats, may be computed in any order and so in parallel lanes. The
    // integers are signed because SSE2 compares signed ones.
    let largest = samples
        .iter()
        .fold(0_i32, |largest, sample| largest.max((sample.to_bits() & MAGNITUDE_MASK) as i32));
    f32::from_bits(largest as u32)
}
