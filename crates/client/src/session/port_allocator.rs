//! The numbers of a client's ports and the slots of their buffers.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use proto::request::{Reply, Request, SlabSlot};
use rt::shm::SLOTS_PER_SLAB;

use crate::Error;
use crate::requests::Requests;

/// The free numbers and slots. Locked for the whole of a registration, so that the server learns of
/// slabs in their order.
#[derive(Debug, Default)]
pub(crate) struct PortAllocator {
    pub(super) numbers: FreeList,
    pub(super) slots: FreeList,
    /// Number of slabs that the server knows.
    pub(super) slabs: u32,
}

/// Hands out numbers from 0 on. A released number is reused, oldest first, once no cycle can name
/// it anymore, so that a new port is never mistaken for the previous one.
#[derive(Debug, Default)]
pub(super) struct FreeList {
    next: u32,
    free: VecDeque<ReleasedNumber>,
}

#[derive(Debug)]
struct ReleasedNumber {
    number: u32,
    /// The plan in force at the last check; `None`: no plan names the number.
    plan: Option<u64>,
    /// Another plan came into force since the number was released.
    replaced: bool,
}

/// Limit of released numbers that wait for plans, which come only when the graph changes.
const MAX_WAITING: usize = 64;

impl FreeList {
    /// Returns a free number. `plan`: generation of the plan in force.
    pub(super) fn take(&mut self, plan: u64) -> u32 {
        self.free.iter_mut().for_each(|freed| freed.note_plan(plan));
        let free = self.free.iter().position(|freed| freed.plan.is_none());
        let oldest = (self.free.len() > MAX_WAITING).then_some(0);
        let reused = free.or(oldest).and_then(|index| self.free.remove(index));
        reused.map_or_else(
            || {
                self.next += 1;
                self.next - 1
            },
            |freed| freed.number,
        )
    }

    /// Releases a number. `plan`: generation of the plan in force; `None` if no plan names the
    /// number.
    pub(super) fn give_back(&mut self, number: u32, plan: Option<u64>) {
        self.free.push_back(ReleasedNumber { number, plan, replaced: false });
    }
}

impl ReleasedNumber {
    /// Records the plan in force. The plan after the current one may have been built before the
    /// number was released; the one after that was not: a plan is built only when the previous one
    /// has been taken or withdrawn.
    fn note_plan(&mut self, in_force: u64) {
        match self.plan {
            Some(plan) if plan != in_force => {
                self.plan = (!self.replaced).then_some(in_force);
                self.replaced = true;
            }
            _ => {}
        }
    }
}

pub(super) const fn slab_slot(index: u32) -> SlabSlot {
    SlabSlot { slab: index / SLOTS_PER_SLAB, slot: index % SLOTS_PER_SLAB }
}

pub(super) const fn slot_index(slot: SlabSlot) -> u32 {
    slot.slab * SLOTS_PER_SLAB + slot.slot
}

/// Sends the next slab to the server.
pub(super) fn send_slab(requests: &Requests, segment: BorrowedFd<'_>) -> Result<(), Error> {
    match requests.ask(Request::AddSlab, &[segment])? {
        Reply::Done => Ok(()),
        _ => Err(Error::OTHER_REPLY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fill_one_slab_after_the_other() {
        for (number, slab, slot) in [(0, 0, 0), (15, 0, 15), (16, 1, 0), (40, 2, 8)] {
            assert_eq!(slab_slot(number), SlabSlot { slab, slot });
            assert_eq!(slot_index(slab_slot(number)), number);
        }
    }

    /// Takes `N` numbers while plan `plan` is in force.
    fn taken<const N: usize>(list: &mut FreeList, plan: u64) -> [u32; N] {
        std::array::from_fn(|_| list.take(plan))
    }

    #[test]
    fn a_number_waits_until_the_plan_after_the_next_one_is_in_force() {
        let mut list = FreeList::default();
        assert_eq!(taken(&mut list, 1), [0, 1, 2]);
        list.give_back(1, Some(1));
        assert_eq!(taken(&mut list, 1), [3]);
        assert_eq!(taken(&mut list, 5), [4], "it may have been built before the release");
        assert_eq!(taken(&mut list, 5), [5]);
        assert_eq!(taken(&mut list, 6), [1]);
    }

    #[test]
    fn the_oldest_unused_number_is_reused_first() {
        let mut list = FreeList::default();
        assert_eq!(taken(&mut list, 1), [0, 1, 2]);
        list.give_back(0, Some(1));
        list.give_back(2, None);
        list.give_back(1, None);
        assert_eq!(taken(&mut list, 1), [2, 1, 3]);
    }

    #[test]
    fn numbers_that_wait_for_plans_are_few_even_if_none_comes() {
        let mut list = FreeList::default();
        for _ in 0..1000 {
            let number = list.take(1);
            list.give_back(number, Some(1));
        }
        assert_eq!(list.next as usize, MAX_WAITING + 1);
    }
}
