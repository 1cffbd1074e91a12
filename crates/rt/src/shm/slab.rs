//! Slabs: where the samples of a client's output ports lie.

use super::header::{Layout, SegmentHeader};
use crate::sync::{AtomicU32, Ordering};

/// Room for one port's buffer: 8192 samples or a MIDI buffer, so that a new quantum needs no new memory.
pub const SLOT_BYTES: usize = 32 * 1024;

/// Ports whose buffers share one slab.
pub const SLOTS_PER_SLAB: u32 = 16;

/// Two cache lines, since processors fetch lines in pairs: whoever looks at the header fetches no sample.
const HEADER_BYTES: usize = 128;

/// From slot to slot. A line more than a slot has: slots that begin at the same place of their pages would have the same few
/// places of a cache.
const STRIDE_BYTES: usize = SLOT_BYTES + 64;

/// Size of a slab's segment, whole pages: the header, then the slots. The first one shares the header's page, which every
/// cycle touches.
pub const SLAB_BYTES: usize = (HEADER_BYTES + SLOTS_PER_SLAB as usize * STRIDE_BYTES).next_multiple_of(4096);

/// The beginning of a slab. Written by the ports' owner; connected readers and the server map it read-only.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct SlabHeader {
    header: SegmentHeader,
    /// The cycle for which the owner has finished all the buffers of the slab.
    finished: AtomicU32,
}

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
    /// The samples of `cycle` are complete. Owner's process thread. Thread: cycle.
    #[inline]
    pub fn finish(&self, cycle: u32) {
        // Release: who sees the cycle here sees the samples.
        self.finished.store(cycle, Ordering::Release);
    }

    /// The cycle whose samples the slab holds.
    #[inline]
    pub fn finished(&self) -> u32 {
        // Acquire: pairs with `finish`.
        self.finished.load(Ordering::Acquire)
    }

    /// Where slot `slot` begins, in bytes from the slab's start; `None` if there is no such slot.
    pub const fn slot_offset(slot: u32) -> Option<usize> {
        if slot < SLOTS_PER_SLAB { Some(HEADER_BYTES + slot as usize * STRIDE_BYTES) } else { None }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_for_any_vector_and_touch_neither_each_other_nor_the_header() {
        let mut end = HEADER_BYTES;
        for slot in 0..SLOTS_PER_SLAB {
            let begin = SlabHeader::slot_offset(slot).expect("a slot");
            assert!(begin.is_multiple_of(64) && begin >= end, "slot {slot}");
            end = begin + SLOT_BYTES;
        }
        assert!(end <= SLAB_BYTES && SlabHeader::slot_offset(SLOTS_PER_SLAB).is_none());
    }
}
