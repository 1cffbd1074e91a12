//! Registration of ports. The client itself assigns the numbers and buffers of its ports.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use proto::port_flags::OUTPUT;
use proto::request::{NewPort, PortType, Reply, Request, SlabSlot};
use rt::midi::MidiWriter;
use rt::shm::SLOTS_PER_SLAB;
use sys::buffers::BUFFER_FRAMES;

use super::core::Core;
use crate::Error;
use crate::locked::locked;
use crate::process::{OwnSlabs, PortCell, Tie, in_cycle};
use crate::requests::Requests;

/// The free numbers and slots. Locked for the whole of a registration, so that the server learns of
/// slabs in their order.
#[derive(Debug, Default)]
pub(crate) struct PortAllocator {
    numbers: FreeList,
    slots: FreeList,
    /// Number of slabs that the server knows.
    pub(super) slabs: u32,
}

/// Hands out numbers from 0 on. A released number is reused, oldest first, once no cycle can name
/// it anymore, so that a new port is never mistaken for the previous one.
#[derive(Debug, Default)]
struct FreeList {
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
    fn take(&mut self, plan: u64) -> u32 {
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
    fn give_back(&mut self, number: u32, plan: Option<u64>) {
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

const fn slab_slot(index: u32) -> SlabSlot {
    SlabSlot { slab: index / SLOTS_PER_SLAB, slot: index % SLOTS_PER_SLAB }
}

const fn slot_index(slot: SlabSlot) -> u32 {
    slot.slab * SLOTS_PER_SLAB + slot.slot
}

/// Sends the next slab to the server.
pub(super) fn send_slab(requests: &Requests, segment: BorrowedFd<'_>) -> Result<(), Error> {
    match requests.ask(Request::AddSlab, &[segment])? {
        Reply::Done => Ok(()),
        _ => Err(Error::OTHER_REPLY),
    }
}

const NO_ROOM: Error = Error::Protocol("it allows more ports than a client can have");

impl Core {
    /// Implements `Session::register_port`.
    pub(crate) fn register_port(
        &self,
        name: &str,
        port_type: PortType,
        flags: u32,
    ) -> Result<u32, Error> {
        proto::names::check_port(&self.name, name)?;
        self.with_server(|requests| {
            let mut allocator = locked(&self.allocator);
            let number = allocator.numbers.take(self.plan_in_force());
            let port = NewPort { name: name.to_owned(), port_type, flags, number, slot: None };
            let registered = self.register(requests, &mut allocator, port);
            if registered.is_err() {
                self.forget(&mut allocator, number, None, None);
            }
            registered
        })
    }

    fn register(
        &self,
        requests: &Requests,
        allocator: &mut PortAllocator,
        mut port: NewPort,
    ) -> Result<u32, Error> {
        let number = port.number;
        if port.flags & OUTPUT == 0 {
            self.ports.add_input(number, port.port_type).ok_or(NO_ROOM)?;
        } else {
            let slot = allocator.slots.take(self.plan_in_force());
            if let Err(error) =
                self.prepare_output(requests, allocator, number, port.port_type, slab_slot(slot))
            {
                allocator.slots.give_back(slot, None);
                return Err(error);
            }
            port.slot = Some(slab_slot(slot));
        }
        let Reply::Port(id) = requests.ask(Request::RegisterPort(port), &[])? else {
            return Err(Error::OTHER_REPLY);
        };
        self.ports.set_id(number, id).ok_or(NO_ROOM)?;
        Ok(id)
    }

    /// Prepares a silent buffer for output `number`, in a new slab if needed.
    fn prepare_output(
        &self,
        requests: &Requests,
        allocator: &mut PortAllocator,
        number: u32,
        port_type: PortType,
        at: SlabSlot,
    ) -> Result<(), Error> {
        if at.slab >= allocator.slabs {
            let slab = OwnSlabs::create()?;
            if self.memory().is_realtime() {
                // Best effort, as for the server's pages.
                let _ = slab.lock_on_fault();
            }
            send_slab(requests, slab.segment().fd())?;
            self.own_slabs.add(at.slab, slab).ok_or(NO_ROOM)?;
            allocator.slabs = at.slab + 1;
        }
        let slab = self.own_slabs.get(at.slab).ok_or(NO_ROOM)?;
        let samples = slab.slab().slot(at.slot).ok_or(NO_ROOM)?;
        // The whole slot, so that neither a larger quantum nor a MIDI buffer causes a page fault in
        // a cycle or exposes an older port's samples.
        if let Some(mut samples) = slab.borrow(at.slot, BUFFER_FRAMES) {
            samples.fill(0.0);
        }
        if let Some(events) = slab.borrow_midi(at.slot).filter(|_| port_type == PortType::Midi) {
            let quantum = self.newest_cycle().map_or(0, |info| info.quantum);
            MidiWriter::begin(&events, quantum);
        }
        self.ports.add_output(number, port_type, at, samples).ok_or(NO_ROOM)
    }

    /// Implements `Session::unregister_port`.
    pub(crate) fn unregister_port(&self, port: u32) -> Result<(), Error> {
        self.with_server(|requests| {
            let mut allocator = locked(&self.allocator);
            let number = self.ports.number(port).ok_or(Error::NotOwnPort(port))?;
            requests.request(Request::UnregisterPort { port })?;
            // No plan names the ports of an inactive client.
            let plan = self.is_active().then(|| self.plan_in_force());
            self.forget(&mut allocator, number, Some(port), plan);
            drop(allocator);
            // Otherwise a tie of this port could be applied to the next port with its number.
            self.settle_tables();
            Ok(())
        })
    }

    /// Implements `Session::tie_ports`.
    pub(crate) fn tie_ports(&self, input: u32, output: u32) -> Result<(), Error> {
        self.check_fork()?;
        if in_cycle() {
            return Err(Error::InCycle);
        }
        // Locked so that neither port is removed meanwhile.
        let allocator = locked(&self.allocator);
        let number = |port: u32| self.ports.number(port).ok_or(Error::NotOwnPort(port));
        let tie = Tie { output: number(output)?, input: number(input)? };
        let kinds =
            [tie.input, tie.output].map(|number| self.ports.cell(number).and_then(PortCell::kind));
        if !matches!(kinds, [Some((heard, false)), Some((said, true))] if heard == said) {
            return Err(Error::CannotTie);
        }
        locked(&self.tables).change(None, |tables| tables.tie(tie));
        drop(allocator);
        self.await_tables();
        Ok(())
    }

    /// Implements `Session::untie_port`.
    pub(crate) fn untie_port(&self, port: u32) -> Result<(), Error> {
        self.check_fork()?;
        if in_cycle() {
            return Err(Error::InCycle);
        }
        let number = self.ports.number(port).ok_or(Error::NotOwnPort(port))?;
        locked(&self.tables).change(None, |tables| tables.untie(number));
        self.await_tables();
        Ok(())
    }

    fn plan_in_force(&self) -> u64 {
        self.newest_cycle().map_or(0, |info| info.plan)
    }

    /// Releases a port's number and slot. `plan`: as in [`FreeList::give_back`].
    fn forget(
        &self,
        allocator: &mut PortAllocator,
        number: u32,
        port: Option<u32>,
        plan: Option<u64>,
    ) {
        if let Some(slot) = self.ports.cell(number).and_then(|cell| cell.slab_slot()) {
            allocator.slots.give_back(slot_index(slot), plan);
        }
        self.ports.remove(number, port);
        locked(&self.tables).change(None, |tables| tables.untie(number));
        allocator.numbers.give_back(number, plan);
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
