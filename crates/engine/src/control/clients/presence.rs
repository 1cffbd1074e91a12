//! The samples that the driver thread reads: their memory is populated and locked before a plan
//! names it.

use sys::memory::SegmentError;

use super::Clients;
use crate::model::{Model, Port};
use crate::slab::Slab;

impl Clients {
    /// Makes the first `frames` frames of an output port's buffer ready for the driver to read.
    ///
    /// # Errors
    /// [`SegmentError::Populate`]: the owner has never written them, and the kernel has no memory.
    pub(in super::super) fn make_present(
        &mut self,
        output: &Port,
        frames: u32,
    ) -> Result<(), SegmentError> {
        let Some(slot) = output.slot else { return Ok(()) };
        let locking = self.locking;
        let slab = self.slab_mut(output.owner, slot.slab);
        slab.map_or(Ok(()), |slab| slab.make_present(slot.slot, frames, locking))
    }

    /// Makes everything that the driver plays and records in cycles of `frames` frames ready for
    /// it. What the kernel has no memory for is not heard, which is reported once for each slab.
    pub(in super::super) fn make_playback_present(&mut self, model: &Model, frames: u32) {
        for input in model.inputs_of_server() {
            for output in input.links.iter().filter_map(|link| model.port(link.other)) {
                let Err(error) = self.make_present(output, frames) else { continue };
                let slab = output.slot.and_then(|slot| self.slab_mut(output.owner, slot.slab));
                if slab.is_some_and(Slab::notes_refusal) {
                    sys::report!(
                        "consort: '{}' is not heard at '{}': {error}; end programs that use much memory, then connect the ports again",
                        output.name,
                        input.name
                    );
                }
            }
        }
    }

    fn slab_mut(&mut self, owner: u32, number: u32) -> Option<&mut Slab> {
        if let Some(slab) = self.stream_slabs.get_mut(&(owner, number)) {
            return Some(slab);
        }
        let slabs = match self.device_slabs.get_mut(&owner) {
            Some(slabs) => slabs,
            None => &mut self.slots.get_mut(&owner)?.memory.slabs,
        };
        slabs.get_mut(number as usize)
    }
}
