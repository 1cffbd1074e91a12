//! The setting that models of whole cycles share: clients with their pages, and their plans.

use std::sync::Arc;

use consort_rt::cycle::{self, Follower, NewCycle, Seat};
use consort_rt::shm::{
    ASSIGNMENT_WORDS, AssignmentWriter, Assignments, CycleInfo, Edges, EngineSegment, FollowerEdge,
    OwnPage, SignalPage, absent,
};
use consort_rt::sync::{AtomicU32, Ordering};
use consort_rt::turn::{Pages, SignalPages, Turn, TurnState, signal_follower};

use crate::futex::Futex;

/// The engine segment, and the futex of a model.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) engine: EngineSegment,
    pub(crate) futex: Futex,
}

/// One client's pages, and one frame of its output.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) assignments: Assignments,
    pub(crate) own: OwnPage,
    pub(crate) signals: SignalPage,
    /// The page that replaces `signals`.
    pub(crate) fresh: SignalPage,
    pub(crate) sample: AtomicU32,
}

impl SignalPages for &Client {
    fn page(&self, place: u32) -> Option<&SignalPage> {
        Some(if place == 0 { &self.signals } else { &self.fresh })
    }

    // Both are mapped from the beginning.
    fn refresh(&mut self) {}
}

/// A client in a plan.
#[derive(Debug, Clone)]
pub(crate) struct Chair {
    pub(crate) client: Arc<Client>,
    pub(crate) edges: Edges,
    pub(crate) followers: Vec<Follower>,
    pub(crate) enters: bool,
    /// It had its first page in the plan before, and has the fresh one in this plan.
    pub(crate) moves: bool,
}

/// A process thread's memory between cycles.
pub(crate) type Memory = TurnState<[u32; ASSIGNMENT_WORDS]>;

impl Stage {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { engine: EngineSegment::default(), futex: Futex::new() })
    }

    /// Starts `cycle` of plan `plan`, as the driver.
    pub(crate) fn begin(&self, seats: &[Chair], cycle: u32, plan: u64, first: bool) {
        let info = CycleInfo { cycle, plan, ..CycleInfo::default() };
        let is_root = |seat: &usize| seats[*seat].edges == Edges::NONE;
        let roots: Vec<usize> = (0..seats.len()).filter(is_root).collect();
        let new_cycle = NewCycle { info, first_of_plan: first, roots: &roots };
        cycle::begin(&self.engine, seats, new_cycle, &self.futex);
    }

    /// Checks once whether it is the turn of `client`, as its process thread, and sleeps if not.
    pub(crate) fn poll(&self, mut client: &Client, memory: &mut Memory) -> Option<u32> {
        let pages =
            Pages { engine: &self.engine, assignments: &client.assignments, own: &client.own };
        match memory.next(pages, &mut client, Some(0), &mut 0, &self.futex) {
            Turn::Run(info) => Some(info.cycle),
            Turn::Wait => None,
        }
    }

    /// Sleeps until it is the turn of `client`, as its process thread, in another cycle than the
    /// one that it ran last; returns the cycle.
    pub(crate) fn await_turn(&self, client: &Client, memory: &mut Memory) -> u32 {
        let last = memory.last_cycle;
        loop {
            if let Some(cycle) = self.poll(client, memory) {
                assert_ne!(cycle, last, "a client runs each cycle once");
                return cycle;
            }
        }
    }

    /// Passes the turn on to `client`, as a predecessor.
    pub(crate) fn signal(&self, client: &Client, edges: u32, edge: u32, cycle: u32) {
        self.signal_on(&client.signals, edges, edge, cycle);
    }

    /// Like [`signal`](Self::signal), on one of the client's pages.
    pub(crate) fn signal_on(&self, page: &SignalPage, edges: u32, edge: u32, cycle: u32) {
        signal_follower(page, FollowerEdge { page: 0, edge, edges }, cycle, 0, &self.futex);
    }
}

impl Client {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            assignments: Assignments::default(),
            own: OwnPage::default(),
            signals: SignalPage::default(),
            fresh: SignalPage::default(),
            sample: AtomicU32::new(0),
        })
    }

    /// Assigns the client, as the control thread, to run after `edges` predecessors, or not at all,
    /// from `plan` on.
    pub(crate) fn assign(&self, plan: u64, edges: Option<u32>) {
        self.assign_on(plan, edges, 0);
    }

    /// Like [`assign`](Self::assign), on its signal page number `page`.
    pub(crate) fn assign_on(&self, plan: u64, edges: Option<u32>, page: u32) {
        let mut words = [0; ASSIGNMENT_WORDS];
        let published = match edges {
            Some(count) => {
                let mut writer = AssignmentWriter::new(&mut words, None, self::edges(count), false);
                writer.page(page);
                self.assignments.publish(plan, writer.finish().expect("fits"))
            }
            None => self.assignments.publish(plan, &absent(page)),
        };
        assert!(published);
    }

    /// Writes its output for `cycle`.
    pub(crate) fn write(&self, cycle: u32) {
        self.sample.store(cycle, Ordering::Relaxed);
    }

    /// Returns the cycle whose samples a reader finds.
    pub(crate) fn read(&self) -> u32 {
        self.sample.load(Ordering::Relaxed)
    }
}

impl Chair {
    pub(crate) fn new(client: &Arc<Client>, edges: u32) -> Self {
        Self {
            client: Arc::clone(client),
            edges: self::edges(edges),
            followers: Vec::new(),
            enters: false,
            moves: false,
        }
    }

    /// Marks the client as having its fresh page, and the other one in the plan before.
    pub(crate) fn moving(self) -> Self {
        Self { moves: true, ..self }
    }

    /// Marks the client as having slept on another word in the plan before.
    pub(crate) fn entering(self) -> Self {
        Self { enters: true, ..self }
    }

    pub(crate) fn before(mut self, seat: usize, edge: u32) -> Self {
        self.followers.push(Follower { seat, edge });
        self
    }
}

impl Seat for Chair {
    fn own(&self) -> &OwnPage {
        &self.client.own
    }

    fn assignments(&self) -> &Assignments {
        &self.client.assignments
    }

    fn signals(&self) -> &SignalPage {
        if self.moves { &self.client.fresh } else { &self.client.signals }
    }

    fn previous_signals(&self) -> Option<&SignalPage> {
        self.moves.then_some(&self.client.signals)
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

pub(crate) fn edges(count: u32) -> Edges {
    Edges::new(count).expect("few")
}

pub(crate) fn memory() -> Memory {
    TurnState::new([0; ASSIGNMENT_WORDS])
}
