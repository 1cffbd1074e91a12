//! Operations on eight samples in a register.

use core::arch::x86_64::{
    __m256, __m256i, _CMP_GE_OQ, _CMP_ORD_Q, _mm_loadl_epi64, _mm_loadu_si128, _mm_storel_epi64,
    _mm_storeu_si128, _mm256_and_ps, _mm256_castps_si256, _mm256_castsi128_si256,
    _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_cvtps_epi32,
    _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps, _mm256_permute2x128_si256,
    _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set1_ps, _mm256_setr_epi32,
    _mm256_storeu_ps, _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};
use core::mem::transmute;

use crate::LANES;

/// Shuffle index that selects no byte and so gives 0.
pub(super) const NONE: i8 = -1;

/// Returns the operand that makes a shuffle place bytes: in each half of four samples, `distance`
/// bytes from one sample to the next.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn in_order<const BYTES: usize>(places: [i8; BYTES], distance: usize) -> __m256i {
    let mut order = [NONE; 16];
    for (sample, order) in order.chunks_exact_mut(BYTES).take(4).enumerate() {
        for (byte, place) in order.iter_mut().zip(places) {
            *byte = if place == NONE { NONE } else { (sample * distance) as i8 + place };
        }
    }
    // SAFETY: the arrays have the same size, and every bit pattern is valid for both.
    unsafe { transmute([order; 2]) }
}

/// Returns the integers of 16 or 24 bits for samples; see [`Format`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn quantised<const BITS: u32>(samples: __m256) -> __m256i {
    let full_scale = (1_u32 << (BITS - 1)) as f32;
    let scaled = _mm256_mul_ps(without_nan(samples), _mm256_set1_ps(full_scale));
    let scaled = _mm256_max_ps(scaled, _mm256_set1_ps(-full_scale));
    // Rounds to nearest, ties to even.
    _mm256_cvtps_epi32(_mm256_min_ps(scaled, _mm256_set1_ps(full_scale - 1.0)))
}

/// Returns the integers of 32 bits for samples, like [`quantised`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn quantised_32(samples: __m256) -> __m256i {
    let full_scale = _mm256_set1_ps(2_147_483_648.0);
    let scaled = _mm256_mul_ps(without_nan(samples), full_scale);
    // What exceeds 32 bits becomes the smallest integer, whose complement is the largest.
    let beyond = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GE_OQ>(scaled, full_scale));
    _mm256_xor_si256(_mm256_cvtps_epi32(scaled), beyond)
}

#[inline]
#[target_feature(enable = "avx2")]
fn without_nan(samples: __m256) -> __m256 {
    _mm256_and_ps(samples, _mm256_cmp_ps::<_CMP_ORD_Q>(samples, samples))
}

/// Returns the samples for integers that occupy the high bits of words.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn scaled(words: __m256i) -> __m256 {
    _mm256_mul_ps(_mm256_cvtepi32_ps(words), _mm256_set1_ps(1.0 / 2_147_483_648.0))
}

/// Transposes eight rows of eight samples.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn transposed([a, b, c, d, e, f, g, h]: [__m256i; LANES]) -> [__m256i; LANES] {
    let [a, b, c, d] = columns_of_four(a, b, c, d);
    let [e, f, g, h] = columns_of_four(e, f, g, h);
    [
        _mm256_permute2x128_si256::<0x20>(a, e),
        _mm256_permute2x128_si256::<0x20>(b, f),
        _mm256_permute2x128_si256::<0x20>(c, g),
        _mm256_permute2x128_si256::<0x20>(d, h),
        _mm256_permute2x128_si256::<0x31>(a, e),
        _mm256_permute2x128_si256::<0x31>(b, f),
        _mm256_permute2x128_si256::<0x31>(c, g),
        _mm256_permute2x128_si256::<0x31>(d, h),
    ]
}

/// Transposes four rows: register n holds column n in its lower half, and column n + 4 in its upper
/// half.
#[inline]
#[target_feature(enable = "avx2")]
fn columns_of_four(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> [__m256i; 4] {
    let (left, right) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (left_below, right_below) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(left, left_below),
        _mm256_unpackhi_epi64(left, left_below),
        _mm256_unpacklo_epi64(right, right_below),
        _mm256_unpackhi_epi64(right, right_below),
    ]
}

/// Writes eight samples, of which four start in each half of `row`.
///
/// # Safety
/// The bytes must be writable. They need no alignment.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn put<const BYTES: usize>(row: __m256i, into: *mut u8) {
    // SAFETY: the caller guarantees that the bytes are writable.
    unsafe {
        match BYTES {
            2 => {
                let samples = _mm256_permute4x64_epi64::<0b10_00>(row);
                _mm_storeu_si128(into.cast(), _mm256_castsi256_si128(samples));
            }
            3 => {
                let samples =
                    _mm256_permutevar8x32_epi32(row, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
                _mm_storeu_si128(into.cast(), _mm256_castsi256_si128(samples));
                _mm_storel_epi64(into.add(16).cast(), _mm256_extracti128_si256::<1>(samples));
            }
            _ => _mm256_storeu_si256(into.cast(), row),
        }
    }
}

/// Reads what [`put`] has written.
///
/// # Safety
/// The bytes must be readable. They need no alignment.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn got<const BYTES: usize>(from: *const u8) -> __m256i {
    // SAFETY: the caller guarantees that the bytes are readable.
    unsafe {
        match BYTES {
            2 => {
                let samples = _mm256_castsi128_si256(_mm_loadu_si128(from.cast()));
                _mm256_permute4x64_epi64::<0b01_00_00>(samples)
            }
            3 => {
                let (low, high) =
                    (_mm_loadu_si128(from.cast()), _mm_loadl_epi64(from.add(16).cast()));
                let samples = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
                _mm256_permutevar8x32_epi32(samples, _mm256_setr_epi32(0, 1, 2, 6, 3, 4, 5, 6))
            }
            _ => _mm256_loadu_si256(from.cast()),
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn loaded(samples: &[f32; LANES]) -> __m256 {
    // SAFETY: `samples` has as many as are read, and the load needs no alignment.
    unsafe { _mm256_loadu_ps(samples.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(samples: __m256, into: &mut [f32; LANES]) {
    // SAFETY: `into` has as many as are written, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(into.as_mut_ptr(), samples) }
}
