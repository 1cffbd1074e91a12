//! Explicit prefetches: a processor predicts only sequential access.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Prefetches the cache line at `place`. This is a hint; any address is allowed.
#[inline(always)]
pub(super) fn fetch<T>(place: *const T) {
    // SAFETY: every x86-64 processor has the instruction, which has no observable effect at any
    // address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}
