//! Slabs, as the server holds them: the memory of 16 output ports of one client.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rt::shm::SLOTS_PER_SLAB;
use sys::memory::{PeerSlab, SegmentError, SlabPages};

use crate::realtime_limits::Locking;

/// A slab of output ports: the buffers of 16 of them.
#[derive(Debug)]
pub struct Slab {
    /// For its readers.
    pub memory: Arc<OwnedFd>,
    /// For the server itself.
    pub peer: Arc<PeerSlab>,
    /// Where the driver thread writes it, if it is the server's own.
    pages: Option<SlabPages>,
    /// How many frames of each slot the driver can read without a fault.
    present_frames: [u32; SLOTS_PER_SLAB as usize],
    /// It was reported that the kernel has no memory for a slot.
    is_refusal_reported: bool,
}

impl Slab {
    /// Creates a slab whose slots the driver cannot read yet.
    pub fn new(memory: OwnedFd, peer: PeerSlab) -> Self {
        Self {
            memory: Arc::new(memory),
            peer: Arc::new(peer),
            pages: None,
            present_frames: [0; SLOTS_PER_SLAB as usize],
            is_refusal_reported: false,
        }
    }

    /// Has [`populate_slots`](Self::populate_slots) populate these pages.
    pub fn with_pages(self, pages: SlabPages) -> Self {
        Self { pages: Some(pages), ..self }
    }

    /// Populates what the driver thread writes in the first `slots` slots in cycles of any quantum.
    /// Control thread.
    ///
    /// # Errors
    /// [`SegmentError::Populate`]: the driver thread must not write them.
    pub fn populate_slots(&self, slots: u32) -> Result<(), SegmentError> {
        self.pages.as_ref().map_or(Ok(()), |pages| pages.populate_slots(slots))
    }

    /// Populates and locks the first `frames` frames of a slot. Control thread.
    ///
    /// # Errors
    /// [`SegmentError::Populate`]: the driver must not read the slot.
    pub fn make_present(
        &mut self,
        slot: u32,
        frames: u32,
        locking: Locking,
    ) -> Result<(), SegmentError> {
        let Some(present) = self.present_frames.get_mut(slot as usize) else { return Ok(()) };
        if *present < frames {
            // MUTATION: make_present.not_populated
            self.peer.populate(slot, frames as usize)?;
            locking.lock(|| self.peer.lock_on_fault(slot, frames as usize));
            *present = frames;
        }
        Ok(())
    }

    /// Returns whether the driver can read the first `frames` frames of a slot without a fault.
    pub fn is_present(&self, slot: u32, frames: u32) -> bool {
        self.present_frames.get(slot as usize).is_some_and(|present| *present >= frames)
    }

    /// Returns true once: when a refusal is to be reported for the first time.
    pub fn notes_refusal(&mut self) -> bool {
        !std::mem::replace(&mut self.is_refusal_reported, true)
    }
}
