//! The memory by which programs of the graph hear streams: made when the first port of a stream is
//! connected with one, written by the driver thread.

use proto::request::{RequestError, SlabSlot};
use rt::shm::{SLOT_BYTES, SLOTS_PER_SLAB};
use sys::memory::{OwnSlab, PeerSlab};

use super::{State, refused};
use crate::control::Control;
use crate::device_stream::StreamFeed;
use crate::model::Model;
use crate::slab::Slab;
use crate::stream_part::StreamOrder;

/// Slabs of a stream, at most.
const SLABS: u32 = rt::shm::MAX_STREAM_CHANNELS.div_ceil(SLOTS_PER_SLAB);
/// What the header of a slab takes, bytes: a page.
const HEADER_BYTES: usize = 4096;

/// What programs of the graph hear of a stream.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// Slabs for the driver thread, as long as it does not have the stream.
    slabs: Vec<OwnSlab>,
    /// A bit for each channel that a program hears.
    pub(super) heard: u32,
    /// And what the driver thread has of that.
    pub(super) ordered: u32,
}

impl Feed {
    /// Returns the driver thread's part of a stream that begins.
    pub(super) fn begin(&mut self) -> StreamFeed {
        self.ordered = self.heard;
        StreamFeed { slabs: std::mem::take(&mut self.slabs), heard: self.heard }
    }

    /// Returns what the driver thread is to have, if it has something else.
    pub(super) fn unordered(&self) -> Option<u32> {
        (self.heard != self.ordered).then_some(self.heard)
    }
}

/// A bit for each of these ports that is connected with another client than the device that drives.
pub(super) fn heard(model: &Model, ports: &[u32]) -> u32 {
    let is_heard = |port: &u32| {
        let links = model.port(*port).map_or(&[][..], |port| &port.links);
        let mut inputs = links.iter().filter_map(|link| model.port(link.other));
        inputs.any(|input| !model.is_driver(input.owner))
    };
    let bits = (0..u32::BITS).zip(ports).filter(|(_, port)| is_heard(port));
    bits.fold(0, |all, (channel, _)| all | 1 << channel)
}

/// Makes the slabs of the ports of a stream: the driver thread's, and as clients get them.
fn slabs(ports: u32) -> Result<Vec<(OwnSlab, Slab)>, RequestError> {
    let failed = |error: &dyn std::fmt::Display| RequestError::Memory(error.to_string());
    let firsts = (0..ports).step_by(SLOTS_PER_SLAB as usize);
    let slab = |first: u32| {
        let own = OwnSlab::create().map_err(|error| failed(&error))?;
        let slots = (ports - first).min(SLOTS_PER_SLAB);
        own.populate_slots(slots).map_err(|error| failed(&error))?;
        let memory = own.segment().fd().try_clone_to_owned().map_err(|error| failed(&error))?;
        let peer = PeerSlab::map(own.segment()).map_err(|error| failed(&error))?;
        Ok((own, Slab::new(memory, peer)))
    };
    firsts.map(slab).collect()
}

impl Control {
    /// Makes sure that there is memory by which the client of `destination` can hear a stream's
    /// port `source`. Other ports bring their own.
    pub(in crate::control) fn let_hear(
        &mut self,
        source: &str,
        destination: &str,
    ) -> Result<(), RequestError> {
        let (source, reader) = (self.model.find(source)?, self.model.find(destination)?.owner);
        let (port, client, has_slot) = (source.id, source.owner, source.slot.is_some());
        if has_slot || !self.model.is_stream_client(client) || self.model.is_driver(reader) {
            return Ok(());
        }
        let Some(number) = self.streams.of_port(port) else { return Ok(()) };
        self.check_program_slabs(client)?;
        self.make_feed(number, client)
    }

    fn make_feed(&mut self, number: u32, client: u32) -> Result<(), RequestError> {
        let streams = &mut self.streams;
        let Some(stream) = streams.streams.get_mut(&number) else { return Ok(()) };
        let Some(ports) = &mut stream.ports else { return Ok(()) };
        let count = u32::try_from(ports.ports.len()).unwrap_or(u32::MAX);
        let bytes = ports.ports.len() * SLOT_BYTES + SLABS as usize * HEADER_BYTES;
        let made = slabs(count)?;
        if !streams.budget.extend(&mut stream.grant, bytes) {
            return Err(refused(
                "no memory is left for clients to hear this stream: end other streams, or let this \
                 server lock more memory",
            ));
        }
        let mut own_slabs = Vec::new();
        for (half, (own, shared)) in (0..).zip(made) {
            self.clients.locking.lock(|| own.lock_on_fault());
            let slab = number.wrapping_mul(SLABS).wrapping_add(half);
            self.clients.stream_slabs.insert((client, slab), shared);
            ports.slabs.push(slab);
            own_slabs.push(own);
            let first = (half * SLOTS_PER_SLAB) as usize;
            for (slot, port) in (0..SLOTS_PER_SLAB).zip(ports.ports.iter().skip(first)) {
                self.model.place_output(*port, SlabSlot { slab, slot });
            }
        }
        match stream.state {
            State::Granted(_) | State::Moving { .. } => stream.feed.slabs = own_slabs,
            State::Begun(_) => {
                streams.devices.driver.order(StreamOrder::Feed { stream: number, slabs: own_slabs })
            }
            State::Closing(_) => {}
        }
        Ok(())
    }
}
