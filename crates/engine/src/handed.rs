//! A driver on its way: to the driver thread with a plan, and back with the plan that retires.

use std::fmt;
use std::mem;
use std::sync::Arc;

use rt::shm::SLOTS_PER_SLAB;
use sys::memory::{OwnSlab, PeerSlab};

use crate::client_slot::Slab;
use crate::driver::Driver;
use crate::opening::Gate;
use crate::server::ServerError;

/// A driver that changes hands, and what it brings.
pub struct Handed {
    /// Started, and in no cycle yet; or the one that was in force.
    pub driver: Box<dyn Driver>,
    /// Slabs for capture ports that the drivers before had not. There is room for all of those in front of them.
    slabs: Vec<OwnSlab>,
    /// Begins the driver that came, if it waits for an audience. Control thread.
    pub gate: Gate,
}

impl Handed {
    /// `driver` and the slabs that it needs besides the `before` ones that there are. Control thread.
    pub fn new(driver: Box<dyn Driver>, gate: Gate, added: Vec<OwnSlab>, before: usize) -> Self {
        let mut slabs = added;
        slabs.reserve_exact(before);
        Self { driver, slabs, gate }
    }

    /// Puts this driver in the place of `driver`, which is here from then on: the cycle that begins is the first one of
    /// the new driver's. Thread: cycle.
    pub fn take_place_of(&mut self, driver: &mut Box<dyn Driver>, slabs: &mut Vec<OwnSlab>) {
        driver.pause();
        mem::swap(driver, &mut self.driver);
        driver.resume();
        let added = self.slabs.len();
        if added > 0 {
            mem::swap(slabs, &mut self.slabs);
            // Into the room that was made for them: nothing is allocated.
            slabs.append(&mut self.slabs);
            slabs.rotate_left(added);
        }
    }
}

/// `count` slabs of capture ports, for the driver thread and for the control thread, with room for cycles of `quantum`
/// frames in memory. Control thread.
///
/// # Errors
/// If the kernel has no memory, or no descriptors.
pub fn capture_slabs(count: u32, quantum: u32) -> Result<(Vec<OwnSlab>, Vec<Slab>), ServerError> {
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut slab = OwnSlab::create()?;
        (0..SLOTS_PER_SLAB).for_each(|slot| slab.silence(slot, quantum as usize));
        let memory = slab.segment().fd().try_clone_to_owned();
        let memory = memory.map_err(|source| ServerError::Kernel { what: "a descriptor", source })?;
        shared.push(Slab { memory: Arc::new(memory), peer: Arc::new(PeerSlab::map(slab.segment())?) });
        own.push(slab);
    }
    Ok((own, shared))
}

impl fmt::Debug for Handed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handed").field("driver", &self.driver.description()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{Channels, Timer};

    fn slab(sample: f32) -> OwnSlab {
        let mut slab = OwnSlab::create().unwrap();
        slab.samples_mut(SLOTS_PER_SLAB - 1, 1).unwrap()[0] = sample;
        slab
    }

    #[test]
    fn slabs_that_a_driver_brings_come_after_those_that_are_there_and_nothing_is_allocated_for_it() {
        let timer = |capture| -> Box<dyn Driver> {
            Box::new(Timer::new(Channels { capture, playback: 0, monitors: 0 }, 48_000))
        };
        let (mut driver, mut slabs) = (timer(20), vec![slab(0.1), slab(0.2)]);
        let mut handed = Handed::new(timer(50), None, vec![slab(0.3), slab(0.4)], slabs.len());
        let room = handed.slabs.capacity();
        handed.take_place_of(&mut driver, &mut slabs);
        assert_eq!((driver.channels().capture, handed.driver.channels().capture), (50, 20));
        let order: Vec<f32> =
            slabs.iter_mut().map(|slab| slab.samples_mut(SLOTS_PER_SLAB - 1, 1).unwrap()[0]).collect();
        assert_eq!((order, slabs.capacity()), (vec![0.1, 0.2, 0.3, 0.4], room));
        // One that needs no more leaves them alone.
        Handed::new(timer(1), None, Vec::new(), slabs.len()).take_place_of(&mut driver, &mut slabs);
        assert_eq!((slabs.len(), driver.channels().capture), (4, 1));
    }
}
