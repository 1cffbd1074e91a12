//! Conversions written by hand for AVX2, where the compiler vectorises the kernels badly: tiles of
//! interleaved frames, whose registers hold eight samples of a channel and then of a frame, and
//! samples of three bytes.

mod registers;

use core::arch::x86_64::{
    __m256, __m256i, _mm256_castps_si256, _mm256_castsi256_ps, _mm256_setzero_si256,
    _mm256_shuffle_epi8,
};
use core::ops::Range;

use self::registers::{
    NONE, got, in_order, loaded, put, quantised, quantised_32, scaled, store, transposed,
};
use super::fetch;
use crate::kernels::convert;
use crate::kernels::weave::{Tiles, Unweave, Weave};
use crate::{Format, LANES};

/// The AVX2 versions. Only the functions that `dispatch` compiles for AVX2, and calls on a
/// processor that has it, name this type.
pub(crate) struct Avx2;

impl Tiles for Avx2 {
    #[inline(always)]
    fn weave(format: Format, weave: Weave<'_>) {
        // SAFETY: `dispatch` names this type only where the processor has AVX2: see the type.
        unsafe { weave_as(format, weave) }
    }

    #[inline(always)]
    fn unweave(format: Format, unweave: Unweave<'_, '_>) {
        // SAFETY: as above.
        unsafe { unweave_as(format, unweave) }
    }
}

/// How many tiles ahead the channels' samples are prefetched. Two tiles are a cache line.
const SAMPLES_AHEAD: usize = 2;
/// How many tiles ahead the frames are prefetched. Distances from one to sixteen were tried for
/// both; others take longer.
const FRAMES_AHEAD: usize = 4;

#[inline]
#[target_feature(enable = "avx2")]
fn weave_as(format: Format, tiles: Weave<'_>) {
    match format {
        Format::S16Le => weave(tiles, |samples| quantised::<16>(samples), [0, 1]),
        Format::S16Be => weave(tiles, |samples| quantised::<16>(samples), [1, 0]),
        Format::S24Le => weave(tiles, |samples| quantised::<24>(samples), [0, 1, 2, 3]),
        Format::S24Be => weave(tiles, |samples| quantised::<24>(samples), [3, 2, 1, 0]),
        Format::S24PackedLe => weave(tiles, |samples| quantised::<24>(samples), [0, 1, 2]),
        Format::S24PackedBe => weave(tiles, |samples| quantised::<24>(samples), [2, 1, 0]),
        Format::S32Le => weave(tiles, |samples| quantised_32(samples), [0, 1, 2, 3]),
        Format::S32Be => weave(tiles, |samples| quantised_32(samples), [3, 2, 1, 0]),
        Format::FloatLe => weave(tiles, |samples| _mm256_castps_si256(samples), [0, 1, 2, 3]),
        Format::FloatBe => weave(tiles, |samples| _mm256_castps_si256(samples), [3, 2, 1, 0]),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn unweave_as(format: Format, tiles: Unweave<'_, '_>) {
    match format {
        Format::S16Le => unweave::<2>(tiles, [NONE, NONE, 0, 1], |words| scaled(words)),
        Format::S16Be => unweave::<2>(tiles, [NONE, NONE, 1, 0], |words| scaled(words)),
        Format::S24Le => unweave::<4>(tiles, [NONE, 0, 1, 2], |words| scaled(words)),
        Format::S24Be => unweave::<4>(tiles, [NONE, 3, 2, 1], |words| scaled(words)),
        Format::S24PackedLe => unweave::<3>(tiles, [NONE, 0, 1, 2], |words| scaled(words)),
        Format::S24PackedBe => unweave::<3>(tiles, [NONE, 2, 1, 0], |words| scaled(words)),
        Format::S32Le => unweave::<4>(tiles, [0, 1, 2, 3], |words| scaled(words)),
        Format::S32Be => unweave::<4>(tiles, [3, 2, 1, 0], |words| scaled(words)),
        Format::FloatLe => unweave::<4>(tiles, [0, 1, 2, 3], |words| _mm256_castsi256_ps(words)),
        Format::FloatBe => unweave::<4>(tiles, [3, 2, 1, 0], |words| _mm256_castsi256_ps(words)),
    }
}

/// Prefetches the samples and the frames of later tiles, if that many are left. `samples` are those
/// of the current channels, and `last` is their last byte in the first frame: the line of their
/// first byte was prefetched with the channels before them.
#[inline(always)]
fn fetch_ahead(
    left: Range<usize>,
    samples: impl Iterator<Item = *const [f32; LANES]>,
    last: *const u8,
    frame_bytes: usize,
) {
    if left.start.is_multiple_of(SAMPLES_AHEAD) && left.len() > SAMPLES_AHEAD {
        samples.for_each(|samples| fetch(samples.wrapping_add(SAMPLES_AHEAD)));
    }
    if left.len() > FRAMES_AHEAD {
        for frame in FRAMES_AHEAD * LANES..(FRAMES_AHEAD + 1) * LANES {
            fetch(last.wrapping_add(frame * frame_bytes));
        }
    }
}

/// Writes tiles of samples; `places` gives the byte of a word for each byte of a sample.
#[inline]
#[target_feature(enable = "avx2")]
fn weave<const BYTES: usize>(
    tiles: Weave<'_>,
    to_words: impl Fn(__m256) -> __m256i,
    places: [i8; BYTES],
) {
    let Weave { from, into, first, channels } = tiles;
    let (frame_bytes, at) = (channels * BYTES, first * BYTES);
    if at + LANES * BYTES > frame_bytes {
        return;
    }
    let count = into.len() / (LANES * frame_bytes);
    let planes = from.map(|plane| &plane.as_chunks::<LANES>().0[..count]);
    let order = in_order(places, 4);
    for (index, frames) in into.chunks_exact_mut(LANES * frame_bytes).enumerate() {
        let base = frames.as_mut_ptr().wrapping_add(at);
        let last = base.wrapping_add(LANES * BYTES - 1);
        fetch_ahead(
            index..count,
            planes.iter().map(|plane| &raw const plane[index]),
            last,
            frame_bytes,
        );
        let mut words = [_mm256_setzero_si256(); LANES];
        for (words, plane) in words.iter_mut().zip(&planes) {
            *words = to_words(loaded(&plane[index]));
        }
        for (frame, row) in transposed(words).into_iter().enumerate() {
            // SAFETY: the chunk has `LANES` frames, each with `LANES * BYTES` bytes from `at` on:
            // see above.
            unsafe { put::<BYTES>(_mm256_shuffle_epi8(row, order), base.add(frame * frame_bytes)) };
        }
    }
}

/// Reads tiles of samples; `places` gives the byte of a sample for each byte of a word.
#[inline]
#[target_feature(enable = "avx2")]
fn unweave<const BYTES: usize>(
    tiles: Unweave<'_, '_>,
    places: [i8; 4],
    to_samples: impl Fn(__m256i) -> __m256,
) {
    let Unweave { source, into, first, channels } = tiles;
    let (frame_bytes, at) = (channels * BYTES, first * BYTES);
    if at + LANES * BYTES > frame_bytes {
        return;
    }
    let count = source.len() / (LANES * frame_bytes);
    let mut planes = into.each_mut().map(|plane| &mut plane.as_chunks_mut::<LANES>().0[..count]);
    let order = in_order(places, BYTES);
    for (index, frames) in source.chunks_exact(LANES * frame_bytes).enumerate() {
        let base = frames.as_ptr().wrapping_add(at);
        let last = base.wrapping_add(LANES * BYTES - 1);
        fetch_ahead(
            index..count,
            planes.iter().map(|plane| &raw const plane[index]),
            last,
            frame_bytes,
        );
        let mut rows = [_mm256_setzero_si256(); LANES];
        for (frame, row) in rows.iter_mut().enumerate() {
            // SAFETY: the chunk has `LANES` frames, each with `LANES * BYTES` bytes from `at` on:
            // see above.
            let samples = unsafe { got::<BYTES>(base.add(frame * frame_bytes)) };
            *row = _mm256_shuffle_epi8(samples, order);
        }
        for (plane, words) in planes.iter_mut().zip(transposed(rows)) {
            store(to_samples(words), &mut plane[index]);
        }
    }
}

/// Encodes like the kernel, with a faster way for samples of three bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn encode(
    format: Format,
    source: &[f32],
    into: &mut [u8],
    channel: usize,
    channels: usize,
) {
    let places = match format {
        Format::S24PackedLe => Some([0, 1, 2]),
        Format::S24PackedBe => Some([2, 1, 0]),
        _ => None,
    };
    let done = match places.filter(|_| (channel, channels) == (0, 1)) {
        Some(places) => pack(source, into, places),
        None => 0,
    };
    convert::encode(format, &source[done..], &mut into[3 * done..], channel, channels);
}

/// Decodes like the kernel, with a faster way for samples of three bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn decode(
    format: Format,
    source: &[u8],
    into: &mut [f32],
    channel: usize,
    channels: usize,
) {
    let places = match format {
        Format::S24PackedLe => Some([NONE, 0, 1, 2]),
        Format::S24PackedBe => Some([NONE, 2, 1, 0]),
        _ => None,
    };
    let done = match places.filter(|_| (channel, channels) == (0, 1)) {
        Some(places) => unpack(source, into, places),
        None => 0,
    };
    convert::decode(format, &source[3 * done..], &mut into[done..], channel, channels);
}

/// Writes consecutive samples of three bytes, eight at a time; returns how many it has written.
#[inline]
#[target_feature(enable = "avx2")]
fn pack(source: &[f32], into: &mut [u8], places: [i8; 3]) -> usize {
    let order = in_order(places, 4);
    let rows = source.as_chunks().0.iter().zip(into.as_chunks_mut::<{ 3 * LANES }>().0);
    let count = rows.len();
    for (samples, into) in rows {
        let row = _mm256_shuffle_epi8(quantised::<24>(loaded(samples)), order);
        // SAFETY: `into` has as many bytes as are written.
        unsafe { put::<3>(row, into.as_mut_ptr()) };
    }
    count * LANES
}

/// Reads what [`pack`] has written.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack(source: &[u8], into: &mut [f32], places: [i8; 4]) -> usize {
    let order = in_order(places, 3);
    let rows = into.as_chunks_mut().0.iter_mut().zip(source.as_chunks::<{ 3 * LANES }>().0);
    let count = rows.len();
    for (samples, from) in rows {
        // SAFETY: `from` has as many bytes as are read.
        let row = unsafe { got::<3>(from.as_ptr()) };
        store(scaled(_mm256_shuffle_epi8(row, order)), samples);
    }
    count * LANES
}
