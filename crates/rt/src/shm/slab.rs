//! Slabs: the memory for the buffers of a client's output ports, sixteen per slab.

use super::header::{Layout, SegmentHeader};
use crate::sync::{AtomicU32, Ordering};

/// Size of one port's buffer: 8192 samples or a MIDI buffer, so that a new quantum needs no new
/// memory.
pub const SLOT_BYTES: usize = 32 * 1024;

/// Number of ports whose buffers share one slab.
pub const SLOTS_PER_SLAB: u32 = 16;

/// Two cache lines, since processors fetch lines in pairs: reading the header must not fetch
/// samples.
const HEADER_BYTES: usize = 128;

/// Distance between slots, a cache line more than a slot. Slots at the same offset of their pages
/// would compete for the same few sets of a cache.
const STRIDE_BYTES: usize = SLOT_BYTES + 64;

/// Size of a slab's segment in whole pages: the header, then the slots. The first slot shares the
/// header's page, which every cycle touches.
pub const SLAB_BYTES: usize =
    (HEADER_BYTES + SLOTS_PER_SLAB as usize * STRIDE_BYTES).next_multiple_of(4096);

/// The start of a slab. The ports' owner writes it; connected readers and the server map it
/// read-only.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct SlabHeader {
    header: SegmentHeader,
    /// The last cycle for which the owner has finished all buffers of the slab.
    finished: AtomicU32,
}

same_for_all_widths!(SlabHeader: 128 bytes; finished at 16);

#[cfg(not(loom))]
const _: () = assert!(size_of::<SlabHeader>() == HEADER_BYTES);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for SlabHeader {
    const KIND: u32 = 6;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

impl SlabHeader {
    /// Marks the samples of `cycle` as complete. Owner's process thread. Thread: cycle.
    #[inline]
    pub fn finish(&self, cycle: u32) {
        // Release: a reader that sees the cycle here sees the samples.
        // MUTATION: slab.finish_relaxed
        self.finished.store(cycle, Ordering::Release);
    }

    /// Returns the cycle whose samples the slab contains.
    #[inline]
    pub fn finished(&self) -> u32 {
        // Acquire: pairs with `finish`.
        // MUTATION: slab.finished_relaxed
        self.finished.load(Ordering::Acquire)
    }

    /// Returns the offset of slot `slot` in bytes from the slab's start; `None` if there is no such
    /// slot.
    pub const fn slot_offset(slot: u32) -> Option<usize> {
        if slot < SLOTS_PER_SLAB { Some(HEADER_BYTES + slot as usize * STRIDE_BYTES) } else { None }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_without_overlapping() {
        let mut end = HEADER_BYTES;
        for slot in 0..SLOTS_PER_SLAB {
            let begin = SlabHeader::slot_offset(slot).expect("a slot");
            assert!(begin.is_multiple_of(64) && begin >= end, "slot {slot}");
            end = begin + SLOT_BYTES;
        }
        assert!(end <= SLAB_BYTES && SlabHeader::slot_offset(SLOTS_PER_SLAB).is_none());
    }
}
