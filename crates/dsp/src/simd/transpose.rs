//! Transposition of tiles.

/// Returns the columns of an 8 × 8 tile.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn transposed(rows: [[u32; 8]; 8]) -> [[u32; 8]; 8] {
    use core::arch::x86_64::{
        __m128i, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
    };
    use core::array;
    use core::mem::transmute;

    // SAFETY: the arrays have the same size, and every bit pattern is valid for both.
    let rows: [[__m128i; 2]; 8] = unsafe { transmute(rows) };
    // Transposes a quarter of the tile.
    let quarter = |top: usize, side: usize| -> [__m128i; 4] {
        let [a, b, c, d] = array::from_fn(|row| rows[top + row][side]);
        // SAFETY: the intrinsics need SSE2, which every x86-64 processor has.
        unsafe {
            let (left, right) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
            let (left_below, right_below) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
            [
                _mm_unpacklo_epi64(left, left_below),
                _mm_unpackhi_epi64(left, left_below),
                _mm_unpacklo_epi64(right, right_below),
                _mm_unpackhi_epi64(right, right_below),
            ]
        }
    };
    let quarters = [[quarter(0, 0), quarter(4, 0)], [quarter(0, 1), quarter(4, 1)]];
    let columns: [[__m128i; 2]; 8] =
        array::from_fn(|column| quarters[column / 4].map(|quarter| quarter[column % 4]));
    // SAFETY: as above.
    unsafe { transmute(columns) }
}

/// Returns the columns of an 8 × 8 tile.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn transposed(rows: [[u32; 8]; 8]) -> [[u32; 8]; 8] {
    core::array::from_fn(|column| rows.map(|row| row[column]))
}
