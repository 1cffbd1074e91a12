//! The plan: the immutable, ordered graph that cycles run until the next plan takes its place. The
//! control thread builds and releases it, the driver thread runs it.

mod build;
mod pool;
#[cfg(test)]
mod tests;
mod view;
mod wakes;

use std::sync::Arc;

use dsp::PeerSamples;
use rt::cycle::{Follower, Seat};
use rt::shm::{Assignments, Edges, OwnPage, SignalPage};
use sys::memory::{PeerSlab, Shared};
use sys::thread::PeerThread;

use crate::client_health::ClientHealth;
use crate::driver_swap::DriverSwap;

pub use build::{build, has_room};
pub use pool::PlanPool;
pub use view::{ClientView, GraphView, Sleep};

/// One client's place in a plan.
#[derive(Debug)]
pub struct PlanSeat {
    /// Its id.
    pub client: u32,
    /// Its own page.
    pub own: Arc<Shared<OwnPage>>,
    /// Its assignments.
    pub assignments: Arc<Shared<Assignments>>,
    /// Its signal page.
    pub signals: Arc<Shared<SignalPage>>,
    /// The signal page that it may sleep on until it is woken into this plan.
    pub left: Option<Arc<Shared<SignalPage>>>,
    /// Its predecessors.
    pub edges: Edges,
    /// Its followers.
    pub followers: Vec<Follower>,
    /// It slept on another word in the plan before, or was in no plan, and must be woken there.
    pub enters: bool,
    /// Whether it keeps up.
    pub health: Arc<ClientHealth>,
    /// Its process thread; `None`: unknown.
    pub thread: Option<Arc<PeerThread>>,
    /// Transport requests on its own page count: it has the permission to control.
    pub controls: bool,
    /// A path leads from it to a playback port or to a stream that records, within one cycle.
    pub feeds_playback: bool,
}

/// A buffer that a playback port hears, or a stream records.
#[derive(Debug)]
pub struct PlaybackSource {
    slab: Arc<PeerSlab>,
    slot: u32,
}

/// The graph as the driver thread runs it.
#[derive(Debug, Default)]
pub struct Plan {
    /// Counts plans; assignments hold from one on.
    pub generation: u64,
    /// Length of a cycle, frames.
    pub quantum: u32,
    /// Cycles must be run: a client is active, or sound goes from the device to itself.
    pub needs_cycles: bool,
    /// Cycles follow each other without a pause, and the driver rests.
    pub freewheels: bool,
    /// The clients that run; each after its predecessors.
    pub seats: Vec<PlanSeat>,
    /// The seats that wait for the driver alone, in the order in which it wakes them.
    pub roots: Vec<usize>,
    /// The sources of each playback channel.
    pub playback: Vec<Vec<PlaybackSource>>,
    /// The streams that record something, by number, and the sources of each of their channels.
    pub recorded: Vec<(u32, Vec<Vec<PlaybackSource>>)>,
    /// Whether each output port of the driver has a connection, by number.
    pub connected: Vec<bool>,
    /// The driver from this plan on; in a plan that retires, the one that it took the place of.
    /// `None`: it stays.
    pub driver_swap: Option<DriverSwap>,
    /// A client reads the driver's channels or, if the driver captures nothing, plays into it.
    pub has_listeners: bool,
}

impl PlanSeat {
    /// Takes the client's real-time priority, until it has finished its cycle. Thread: cycle.
    pub fn demote(&self) {
        if self.thread.as_ref().is_some_and(|thread| thread.demote()) {
            self.own.note_demoted();
        }
    }
}

impl Seat for PlanSeat {
    fn own(&self) -> &OwnPage {
        &self.own
    }

    fn assignments(&self) -> &Assignments {
        &self.assignments
    }

    fn signals(&self) -> &SignalPage {
        &self.signals
    }

    fn previous_signals(&self) -> Option<&SignalPage> {
        self.left.as_ref().map(|left| &***left)
    }

    fn edges(&self) -> Edges {
        self.edges
    }

    fn followers(&self) -> &[Follower] {
        &self.followers
    }

    fn enters(&self) -> bool {
        self.enters
    }
}

impl PlaybackSource {
    /// The output of port `slot` of `slab`.
    pub fn new(slab: Arc<PeerSlab>, slot: u32) -> Self {
        Self { slab, slot }
    }

    /// Its samples of `cycle`; `None` if its client has not finished them. Thread: cycle.
    pub fn samples(&self, cycle: u32, frames: usize) -> Option<PeerSamples<'_>> {
        (self.slab.header().finished() == cycle)
            .then(|| self.slab.samples(self.slot, frames))
            .flatten()
    }
}

impl Plan {
    /// Returns whether a playback port has a source.
    pub fn plays(&self) -> bool {
        self.playback.iter().any(|sources| !sources.is_empty())
    }

    /// Returns the sources of each channel of a stream that records something. Thread: cycle.
    pub fn recording(&self, stream: u32) -> Option<&[Vec<PlaybackSource>]> {
        let place = self.recorded.binary_search_by_key(&stream, |(number, _)| *number).ok()?;
        self.recorded.get(place).map(|(_, channels)| channels.as_slice())
    }

    /// Releases everything that the plan kept mapped. Control thread, when the plan has retired.
    pub fn clear(&mut self) {
        self.seats.clear();
        self.roots.clear();
        self.playback.clear();
        self.recorded.clear();
    }
}
