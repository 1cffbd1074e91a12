//! Registration of ports. The client itself assigns the numbers and buffers of its ports.

use proto::port_flags::OUTPUT;
use proto::request::{NewPort, PortType, Reply, Request, SlabSlot};
use rt::midi::MidiWriter;
use sys::buffers::BUFFER_FRAMES;

use super::core::Core;
use super::port_allocator::{PortAllocator, send_slab, slab_slot, slot_index};
use crate::Error;
use crate::locked::locked;
use crate::process::{OwnSlabs, PortCell, Tie, in_cycle};
use crate::requests::Requests;

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
