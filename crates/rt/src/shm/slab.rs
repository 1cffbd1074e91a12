//! Slabs: where the samples of a client's output ports lie.

use super::header::{Layout, SegmentHeader};
use crate::sync::{AtomicU32, Ordering};

/// Room for one port's buffer: 8192 samples or a MIDI buffer, so that a new quantum needs no new memory.
pub const SLOT_BYTES: usize = 32 * 1024;

/// Ports whose buffers share one slab.
pub const SLOTS_PER_SLAB: u32 = 16;

const HEADER_BYTES: usize = 4096;

/// Size of a slab's segment: the header's page, then the slots.
pub const SLAB_BYTES: usize = HEADER_BYTES + SLOTS_PER_SLAB as usize * SLOT_BYTES;

/// The first page of a slab. Written by the ports' owner; connected readers and the server map it read-only.
#[repr(C, align(4096))]
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
        if slot < SLOTS_PER_SLAB { Some(HEADER_BYTES + slot as usize * SLOT_BYTES) } else { None }
    }
}
