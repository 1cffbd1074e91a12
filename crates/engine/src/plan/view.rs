//! What a plan is built from.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rt::shm::{Assignments, Edges, OwnPage};
use sys::memory::{PeerSlab, Shared};
use sys::thread::PeerThread;

use crate::client_health::ClientHealth;
use crate::mapped::MappedTable;
use crate::model::{Model, Port};
use crate::order::Order;
use crate::signal_pages::SignalPages;
use crate::slab::Slab;

/// Where a client slept in a plan, which decides who must wake it into the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sleep {
    /// It was in no plan: on its signal page.
    #[default]
    Absent,
    /// It waited for the driver alone: on its assignments.
    Turn,
    /// It waited for predecessors: on its signal page.
    Signals,
}

impl From<Edges> for Sleep {
    fn from(edges: Edges) -> Self {
        if edges == Edges::NONE { Self::Turn } else { Self::Signals }
    }
}

/// A client, as far as a plan needs it.
#[derive(Debug)]
pub struct ClientView<'a> {
    /// Its own page.
    pub own: &'a Arc<Shared<OwnPage>>,
    /// Its assignments.
    pub assignments: &'a Arc<Shared<Assignments>>,
    /// Its signal pages.
    pub signals: &'a SignalPages,
    /// Its slabs, by number.
    pub slabs: &'a [Slab],
    /// The signal pages that it has mapped, by client and number.
    pub mapped_pages: &'a MappedTable<(u32, u32)>,
    /// The slabs that it has mapped, by client and number.
    pub mapped_slabs: &'a MappedTable<(u32, u32)>,
    /// Whether it keeps up.
    pub health: &'a Arc<ClientHealth>,
    /// Its process thread; `None`: unknown.
    pub thread: Option<&'a Arc<PeerThread>>,
    /// Where it sleeps in the plan in force.
    pub sleep: Sleep,
    /// It may change the transport.
    pub controls: bool,
    /// The CPU assigned to it; `None`: the kernel decides.
    pub cpu: Option<u32>,
}

/// The graph and the memory of its clients, as the control thread knows them when a plan is built.
#[derive(Debug)]
pub struct GraphView<'a> {
    /// The graph.
    pub model: &'a Model,
    /// The order of the clients that run.
    pub order: &'a Order,
    /// The connected clients, by id.
    pub clients: HashMap<u32, ClientView<'a>>,
    /// Slabs of the devices' output ports.
    pub device_slabs: &'a BTreeMap<u32, Vec<Slab>>,
    /// Slabs of streams' output ports, by client and number.
    pub stream_slabs: &'a BTreeMap<(u32, u32), Slab>,
    /// The streams that record in the graph, by number, and the ids of their ports by channel.
    pub recorders: &'a [(u32, Vec<u32>)],
    /// What the driver's capture ports have is more than silence.
    pub driver_captures: bool,
    /// The driver captures: otherwise its output ports, and those of streams, are silent.
    pub captures: bool,
    /// Length of a cycle, frames.
    pub quantum: u32,
    /// The driver waits for the end of the graph, so that clients must wake it.
    pub driver_waits: bool,
    /// The driver's CPU; `None`: the kernel decides where clients run.
    pub driver_cpu: Option<u32>,
    /// Other CPUs take long to wake up: one client on each wakes before the cycle is due.
    pub wakes_early: bool,
}

/// How to reach an output port's samples.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SourceView {
    /// The client's own slab.
    Own,
    /// The reader has mapped the slab under this index.
    Mapped(u32),
    /// Not (yet): silence.
    Silent,
}

impl GraphView<'_> {
    /// Index under which `writer` has mapped the signal page of `reader`.
    pub(super) fn signal_page(&self, writer: u32, reader: u32) -> Option<u32> {
        let number = self.clients.get(&reader)?.signals.current().number;
        self.clients.get(&writer)?.mapped_pages.mapped((reader, number))
    }

    /// How `reader` reaches the slab of an output port.
    pub(super) fn source(&self, reader: u32, port: &Port) -> SourceView {
        let Some(slot) = port.slot else { return SourceView::Silent };
        if port.owner == reader {
            return SourceView::Own;
        }
        let is_paced = self.model.is_driver(port.owner) || self.model.is_stream_client(port.owner);
        if is_paced && !self.captures {
            return SourceView::Silent;
        }
        let reader = self.clients.get(&reader);
        let mapped = reader.and_then(|reader| reader.mapped_slabs.mapped((port.owner, slot.slab)));
        mapped.map_or(SourceView::Silent, SourceView::Mapped)
    }

    /// The slab of an output port as the driver reads it; `None` if that could fault.
    pub(super) fn slab(&self, port: &Port) -> Option<Arc<PeerSlab>> {
        let slot = port.slot?;
        let slab = if self.model.is_stream_client(port.owner) {
            self.stream_slabs.get(&(port.owner, slot.slab))
        } else {
            let slabs = self.device_slabs.get(&port.owner).map(Vec::as_slice);
            let slabs = slabs.or_else(|| Some(self.clients.get(&port.owner)?.slabs));
            slabs.and_then(|slabs| slabs.get(slot.slab as usize))
        }?;
        slab.is_present(slot.slot, self.quantum).then(|| Arc::clone(&slab.peer))
    }

    /// The CPU that a client is to run on, unless the kernel decides.
    pub(super) fn cpu(&self, client: u32) -> Option<u32> {
        self.clients.get(&client)?.cpu
    }
}
