//! Memory that will be wanted soon: a processor foresees only what lies in a row.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Has the cache line at `place` fetched. A hint: it may be anywhere.
#[inline(always)]
pub(super) fn fetch<T>(place: *const T) {
    // SAFETY: every x86-64 processor has the instruction, and it does nothing that can be seen, wherever that is.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}
