//! Registering ports: numbers and buffers are the client's own to give out.

use proto::request::{NewPort, PortType, Reply, Request, SlabSlot};
use rt::midi::MidiWriter;
use rt::shm::SLOTS_PER_SLAB;
use sys::buffers::BUFFER_FRAMES;

use super::core::Core;
use crate::Error;
use crate::locked::locked;
use crate::process::OwnSlabs;

/// `JackPortIsOutput`
const OUTPUT: u32 = 2;

/// Which numbers and slots are free. Locked for the whole of a registration, so that the server hears of slabs in
/// their order.
#[derive(Debug, Default)]
pub(crate) struct PortBook {
    numbers: FreeList,
    slots: FreeList,
    /// Slabs that the server knows.
    slabs: u32,
}

/// Numbers from 0 on; those given back are given out again.
#[derive(Debug, Default)]
struct FreeList {
    next: u32,
    free: Vec<u32>,
}

impl FreeList {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }
}

const fn place(index: u32) -> SlabSlot {
    SlabSlot { slab: index / SLOTS_PER_SLAB, slot: index % SLOTS_PER_SLAB }
}

const fn index(place: SlabSlot) -> u32 {
    place.slab * SLOTS_PER_SLAB + place.slot
}

const NO_ROOM: Error = Error::Protocol("it allows more ports than a client can have");

impl Core {
    /// See `Session::register_port`.
    pub(crate) fn register_port(&self, name: &str, port_type: PortType, flags: u32) -> Result<u32, Error> {
        self.check_request()?;
        proto::names::check_port(&self.name, name)?;
        let mut book = locked(&self.book);
        let number = book.numbers.take();
        let registered = self.register(&mut book, number, |slot| NewPort {
            name: name.to_owned(),
            port_type,
            flags,
            number,
            slot,
        });
        if registered.is_err() {
            self.forget(&mut book, number, None);
        }
        registered
    }

    fn register(
        &self,
        book: &mut PortBook,
        number: u32,
        port: impl FnOnce(Option<SlabSlot>) -> NewPort,
    ) -> Result<u32, Error> {
        let mut port = port(None);
        if port.flags & OUTPUT == 0 {
            self.ports.add_input(number, port.port_type).ok_or(NO_ROOM)?;
        } else {
            let slot = book.slots.take();
            if let Err(error) = self.prepare_output(book, number, port.port_type, place(slot)) {
                book.slots.give_back(slot);
                return Err(error);
            }
            port.slot = Some(place(slot));
        }
        let Reply::Port(id) = self.requests.ask(Request::RegisterPort(port), &[])? else {
            return Err(Error::Protocol("it answered a registration without a port"));
        };
        self.ports.name(number, id);
        Ok(id)
    }

    /// Makes a silent buffer for output `number`, in a new slab if need be.
    fn prepare_output(
        &self,
        book: &mut PortBook,
        number: u32,
        port_type: PortType,
        at: SlabSlot,
    ) -> Result<(), Error> {
        if at.slab >= book.slabs {
            let slab = OwnSlabs::create()?;
            let segment = slab.segment().fd().try_clone_to_owned()?;
            match self.requests.ask(Request::AddSlab, &[std::os::fd::AsFd::as_fd(&segment)])? {
                Reply::Done => {}
                _ => return Err(Error::Protocol("it answered a slab with another reply than Done")),
            }
            self.own_slabs.add(at.slab, slab).ok_or(NO_ROOM)?;
            book.slabs = at.slab + 1;
        }
        let slab = self.own_slabs.get(at.slab).ok_or(NO_ROOM)?;
        let samples = slab.slab().slot(at.slot).ok_or(NO_ROOM)?;
        // All of it: so that no larger quantum, nor a MIDI buffer, faults in a cycle or finds an older port's samples.
        if let Some(mut samples) = slab.borrow(at.slot, BUFFER_FRAMES) {
            samples.fill(0.0);
        }
        if let Some(events) = slab.borrow_midi(at.slot).filter(|_| port_type == PortType::Midi) {
            let quantum = self.newest_cycle().map_or(0, |info| info.quantum);
            MidiWriter::begin(&events, quantum);
        }
        self.ports.add_output(number, port_type, at, samples).ok_or(NO_ROOM)
    }

    /// See `Session::unregister_port`.
    pub(crate) fn unregister_port(&self, port: u32) -> Result<(), Error> {
        self.check_request()?;
        let mut book = locked(&self.book);
        let number = self.ports.number(port).ok_or(Error::NotOwnPort(port))?;
        self.requests.order(Request::UnregisterPort { port })?;
        self.forget(&mut book, number, Some(port));
        Ok(())
    }

    fn forget(&self, book: &mut PortBook, number: u32, port: Option<u32>) {
        if let Some(place) = self.ports.cell(number).and_then(|cell| cell.slab_slot()) {
            book.slots.give_back(index(place));
        }
        self.ports.remove(number, port);
        book.numbers.give_back(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fill_one_slab_after_the_other() {
        for (number, slab, slot) in [(0, 0, 0), (15, 0, 15), (16, 1, 0), (40, 2, 8)] {
            assert_eq!(place(number), SlabSlot { slab, slot });
            assert_eq!(index(place(number)), number);
        }
    }

    #[test]
    fn a_number_that_was_given_back_is_given_out_again() {
        let mut list = FreeList::default();
        assert_eq!([list.take(), list.take(), list.take()], [0, 1, 2]);
        list.give_back(1);
        assert_eq!([list.take(), list.take()], [1, 3]);
    }
}
