//! Conversion of four words to samples of three bytes, and back.

/// Writes the low three bytes of each word, one after the other.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn pack(words: [u32; 4], into: &mut [u8; 12]) {
    use core::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cvtsi128_si32, _mm_cvtsi128_si64, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi64x, _mm_srli_epi64, _mm_srli_si128,
    };
    use core::mem::transmute;

    // SAFETY: the intrinsics need SSE2, which every x86-64 processor has; the transmuted arrays
    // have the same size, and every bit pattern is valid for both.
    let (low, high) = unsafe {
        let words: __m128i = transmute(words);
        // Two adjacent samples, in the low six bytes of each half.
        let first = _mm_and_si128(words, _mm_set1_epi64x(LOW));
        let second = _mm_and_si128(_mm_srli_epi64::<8>(words), _mm_set1_epi64x(HIGH >> 8));
        let pairs = _mm_or_si128(first, second);
        let low_half = _mm_and_si128(pairs, _mm_set_epi64x(0, -1));
        let high_half = _mm_srli_si128::<2>(_mm_and_si128(pairs, _mm_set_epi64x(-1, 0)));
        let packed = _mm_or_si128(low_half, high_half);
        (_mm_cvtsi128_si64(packed), _mm_cvtsi128_si32(_mm_srli_si128::<8>(packed)))
    };
    let (first, last) = into.split_at_mut(8);
    first.copy_from_slice(&low.to_le_bytes());
    last.copy_from_slice(&high.to_le_bytes());
}

/// Restores what [`pack`] was given, except that the high bytes become 0.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn unpacked(bytes: [u8; 12]) -> [u32; 4] {
    use core::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi64x, _mm_slli_epi64,
        _mm_slli_si128,
    };
    use core::mem::transmute;

    let (low, high) = (bytes.first_chunk::<8>(), bytes.last_chunk::<4>());
    let low = low.map_or(0, |low| i64::from_le_bytes(*low));
    let high = high.map_or(0, |high| u32::from_le_bytes(*high));
    // SAFETY: as in `pack`.
    unsafe {
        let bytes = _mm_set_epi64x(i64::from(high), low);
        let low_half = _mm_and_si128(bytes, _mm_set_epi64x(0, -1));
        let high_half = _mm_and_si128(_mm_slli_si128::<2>(bytes), _mm_set_epi64x(-1, 0));
        let pairs = _mm_or_si128(low_half, high_half);
        let first = _mm_and_si128(pairs, _mm_set1_epi64x(LOW));
        let second = _mm_and_si128(_mm_slli_epi64::<8>(pairs), _mm_set1_epi64x(HIGH));
        let words: __m128i = _mm_or_si128(first, second);
        transmute(words)
    }
}

/// Mask of the low three bytes of the first of two words.
#[cfg(target_arch = "x86_64")]
const LOW: i64 = 0xff_ffff;
/// Mask of the low three bytes of the second of two words.
#[cfg(target_arch = "x86_64")]
const HIGH: i64 = LOW << 32;

/// Writes the low three bytes of each word, one after the other.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn pack(words: [u32; 4], into: &mut [u8; 12]) {
    let bytes = words.map(u32::to_le_bytes);
    *into = core::array::from_fn(|index| bytes[index / 3][index % 3]);
}

/// Restores what [`pack`] was given, except that the high bytes become 0.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn unpacked(bytes: [u8; 12]) -> [u32; 4] {
    core::array::from_fn(|index| {
        u32::from_le_bytes([bytes[index * 3], bytes[index * 3 + 1], bytes[index * 3 + 2], 0])
    })
}
