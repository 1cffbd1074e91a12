//! A driver on its way to the driver thread with a plan, or back with the plan that retires.

use std::fmt;
use std::mem;

use device::Driver;
use rt::shm::SLOTS_PER_SLAB;
use sys::memory::{OwnSlab, PeerSlab};

use crate::error::ServerError;
use crate::opening::StartTrigger;
use crate::slab::Slab;

/// A driver on its way between the two threads, and what it brings.
pub struct DriverSwap {
    /// On the way to the driver thread, the new driver: started, and in no cycle yet. On the way
    /// back, the one that was in force.
    pub driver: Box<dyn Driver>,
    /// Additional capture slabs. Capacity is reserved so that the existing ones can be put in front
    /// of them without allocating.
    slabs: Vec<OwnSlab>,
    /// Starts the new driver, if it waits until it has listeners. Control thread.
    pub start_trigger: StartTrigger,
}

impl DriverSwap {
    /// Creates the swap to `driver`, with the slabs `added` that it needs in addition to the
    /// `existing` ones. Control thread.
    pub fn new(
        driver: Box<dyn Driver>,
        start_trigger: StartTrigger,
        added: Vec<OwnSlab>,
        existing: usize,
    ) -> Self {
        let mut slabs = added;
        slabs.reserve_exact(existing);
        Self { driver, slabs, start_trigger }
    }

    /// Puts the new driver in the place of `driver`, which the swap holds afterwards. The cycle
    /// that begins is the first one of the new driver. Thread: cycle.
    pub fn take_place_of(&mut self, driver: &mut Box<dyn Driver>, slabs: &mut Vec<OwnSlab>) {
        driver.pause();
        mem::swap(driver, &mut self.driver);
        driver.resume();
        let added = self.slabs.len();
        if added > 0 {
            mem::swap(slabs, &mut self.slabs);
            // Into the reserved capacity: nothing is allocated.
            slabs.append(&mut self.slabs);
            slabs.rotate_left(added);
        }
    }
}

/// Populates the memory of the first `slots` slots of a device's capture ports, which the driver
/// thread writes in cycles of any quantum: in the `existing` slabs, and in those that it creates in
/// addition, for the driver thread, and as the control thread shares them. Control thread.
///
/// # Errors
/// If the kernel has no memory, or no descriptors.
pub fn capture_slabs(
    existing: &[Slab],
    slots: u32,
) -> Result<(Vec<OwnSlab>, Vec<Slab>), ServerError> {
    let firsts = (0..slots).step_by(SLOTS_PER_SLAB as usize);
    let mut slots_of_slabs = firsts.map(|first| (slots - first).min(SLOTS_PER_SLAB));
    for (slab, slots) in existing.iter().zip(slots_of_slabs.by_ref()) {
        slab.populate_slots(slots)?;
    }
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for slots in slots_of_slabs {
        let slab = OwnSlab::create()?;
        slab.populate_slots(slots)?;
        let memory = slab.segment().fd().try_clone_to_owned();
        let memory =
            memory.map_err(|source| ServerError::Kernel { what: "a descriptor", source })?;
        let peer = PeerSlab::map(slab.segment())?;
        shared.push(Slab::new(memory, peer).with_pages(slab.pages()));
        own.push(slab);
    }
    Ok((own, shared))
}

impl fmt::Debug for DriverSwap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DriverSwap")
            .field("driver", &self.driver.description())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rt::shm::{SLAB_BYTES, SlabHeader};

    use super::*;
    use device::{Channels, Timer};

    fn slab(sample: f32) -> OwnSlab {
        let mut slab = OwnSlab::create().unwrap();
        slab.samples_mut(SLOTS_PER_SLAB - 1, 1).unwrap()[0] = sample;
        slab
    }

    #[test]
    fn slabs_of_a_new_driver_are_appended_without_allocating() {
        let timer = |capture| -> Box<dyn Driver> {
            Box::new(Timer::new(Channels { capture, playback: 0, monitors: 0 }, 48_000))
        };
        let (mut driver, mut slabs) = (timer(20), vec![slab(0.1), slab(0.2)]);
        let mut swap = DriverSwap::new(timer(50), None, vec![slab(0.3), slab(0.4)], slabs.len());
        let room = swap.slabs.capacity();
        swap.take_place_of(&mut driver, &mut slabs);
        assert_eq!((driver.channels().capture, swap.driver.channels().capture), (50, 20));
        let order: Vec<f32> = slabs
            .iter_mut()
            .map(|slab| slab.samples_mut(SLOTS_PER_SLAB - 1, 1).unwrap()[0])
            .collect();
        assert_eq!((order, slabs.capacity()), (vec![0.1, 0.2, 0.3, 0.4], room));
        // A driver that needs no more slabs leaves them alone.
        DriverSwap::new(timer(1), None, Vec::new(), slabs.len())
            .take_place_of(&mut driver, &mut slabs);
        assert_eq!((slabs.len(), driver.channels().capture), (4, 1));
    }

    /// How many pages of the first slots the process has in memory where the driver writes them
    /// (proc_pid_smaps(5)), and how many there are.
    fn resident_of(slab: &OwnSlab, slots: u32) -> (usize, usize) {
        let (first, end) = (slab.slot(0).unwrap().addr().get(), SlabHeader::slot_offset(slots));
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let is_of_slab = |line: &str| {
            let (begin, end) = line.split(' ').next()?.split_once('-')?;
            let address = |text| usize::from_str_radix(text, 16).ok();
            Some((address(begin)?..address(end)?).contains(&first))
        };
        let mut fields = maps.lines().skip_while(|line| is_of_slab(line) != Some(true));
        let resident = fields.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        let kib: usize = resident.trim().trim_end_matches(" kB").parse().unwrap();
        (kib / 4, end.unwrap_or(SLAB_BYTES).div_ceil(4096))
    }

    #[test]
    fn the_memory_of_a_drivers_ports_is_there_before_it_writes_and_no_more() {
        let (own, shared) = capture_slabs(&[], 3).unwrap();
        let (resident, all) = resident_of(&own[0], 3);
        assert_eq!(resident, all);
        let (added, _) = capture_slabs(&shared, SLOTS_PER_SLAB + 2).unwrap();
        let after_it = [(&own[0], SLOTS_PER_SLAB), (&added[0], 2)];
        for (resident, all) in after_it.map(|(slab, slots)| resident_of(slab, slots)) {
            assert_eq!(resident, all, "the driver after it has more ports");
        }
        assert_eq!(added.len(), 1);
    }
}
