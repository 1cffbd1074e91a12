//! The plan: the immutable, ordered graph that cycles run until the next plan takes its place.

mod build;
mod pool;
mod wakes;

use std::sync::Arc;

use dsp::PeerSamples;
use rt::cycle::{Follower, Seat, Wakes};
use rt::rouser::Rouser;
use rt::shm::{Edges, OwnPage, SignalPage};
use rt::sync::{AtomicU32, Ordering};
use sys::memory::{PeerSlab, Shared};

use crate::handed::Handed;

pub use build::{Books, ClientView, SYSTEM, Sleep, SourceView, build, has_room};
pub use pool::PlanPool;

/// One client's place in a plan.
#[derive(Debug)]
pub struct PlanSeat {
    /// Its id.
    pub client: u32,
    /// Its own page.
    pub own: Arc<Shared<OwnPage>>,
    /// Its signal page.
    pub signals: Arc<Shared<SignalPage>>,
    /// The one that it may sleep on until it is woken into this plan.
    pub left: Option<Arc<Shared<SignalPage>>>,
    /// Its predecessors.
    pub edges: Edges,
    /// Its followers.
    pub followers: Vec<Follower>,
    /// It must be woken on its own page: it slept there, or in no plan, and waits elsewhere now.
    pub enters: bool,
    /// How it keeps up.
    pub pulse: Arc<Pulse>,
    /// What it asks of the transport on its own page is heard.
    pub controls: bool,
}

/// How a client keeps up, from plan to plan: counted by the driver thread, read by the control thread.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Cycles in a row at whose end it had not finished, by its own fault.
    pub late_cycles: AtomicU32,
    /// 1: a predecessor was late in the last cycle.
    pub starved: AtomicU32,
    /// Id of its process thread, checked to be one of its process; 0: unknown.
    pub thread: AtomicU32,
    /// 1: its connection has ended, so that nobody need wait for it.
    pub departed: AtomicU32,
}

impl Pulse {
    /// Takes the client's real-time priority, until it has finished what it is at. Thread: cycle.
    pub fn demote(&self, own: &OwnPage) {
        let thread = self.thread.load(Ordering::Relaxed);
        // Without the right to it, the thread was not real-time before.
        if thread != 0 && sys::thread::set_other(thread).is_ok() {
            own.note_demoted();
        }
    }
}

/// A buffer that a playback port hears.
#[derive(Debug)]
pub struct PlaybackSource {
    slab: Arc<PeerSlab>,
    slot: u32,
}

/// The graph as the driver thread runs it.
#[derive(Debug, Default)]
pub struct Plan {
    /// Counts plans; orders hold from one on.
    pub generation: u64,
    /// Length of a cycle, frames.
    pub quantum: u32,
    /// Cycles follow each other as fast as the graph can, and the driver rests.
    pub freewheels: bool,
    /// The clients that run; each after its predecessors.
    pub seats: Vec<PlanSeat>,
    /// Who wakes whom of those who wait for the driver alone.
    pub wakes: Wakes,
    /// Who is called to do so.
    pub rousers: Vec<Arc<Rouser>>,
    /// The sources of each playback channel.
    pub playback: Vec<Vec<PlaybackSource>>,
    /// Whether anybody is connected to it, of each capture channel and then each monitor.
    pub heard: Vec<bool>,
    /// The driver from this plan on; in a plan that retires, the one that it took the place of. `None`: it stays.
    pub handed: Option<Handed>,
    /// Somebody hears the driver or, if it has nothing to say, somebody plays into it.
    pub has_audience: bool,
}

impl Seat for PlanSeat {
    fn own(&self) -> &OwnPage {
        &self.own
    }

    fn signals(&self) -> &SignalPage {
        &self.signals
    }

    fn left(&self) -> Option<&SignalPage> {
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
    /// What port `slot` of `slab` sends.
    pub fn new(slab: Arc<PeerSlab>, slot: u32) -> Self {
        Self { slab, slot }
    }

    /// Its samples of `cycle`; `None` if its client has not finished them. Thread: cycle.
    pub fn samples(&self, cycle: u32, frames: usize) -> Option<PeerSamples<'_>> {
        (self.slab.header().finished() == cycle).then(|| self.slab.samples(self.slot, frames)).flatten()
    }
}

impl Plan {
    /// Lets go of everything that the plan kept mapped. Control thread, when the plan has retired.
    pub fn clear(&mut self) {
        self.seats.clear();
        self.playback.clear();
        self.rousers.clear();
    }
}
