//! A client's side of a cycle: sleep until it is its turn, and pass the turn on.
//!
//! Everything here runs on the client's process thread.

use crate::park::Park;
use crate::shm::{
    CycleInfo, Edges, EngineSegment, FollowerOrder, Orders, OrdersCopy, OrdersReader, OwnPage, SignalPage,
};

/// The pages by which a client takes part in cycles.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'a> {
    /// The server's.
    pub engine: &'a EngineSegment,
    /// What the client is to do.
    pub orders: &'a Orders,
    /// The client's own page.
    pub own: &'a OwnPage,
    /// Where its predecessors signal.
    pub signals: &'a SignalPage,
}

/// Memory of a process thread from cycle to cycle; `words` is allocated before the first.
#[derive(Debug, Default)]
pub struct TurnState<W> {
    /// The cycle that the client ran last: it never runs one twice, whoever wakes it.
    pub last_cycle: u32,
    /// First plan for which the copied orders hold.
    pub valid_from: u64,
    /// Wake-ups counted when the last look ended: what came after it keeps the next look from sleeping.
    woken: u32,
    used: usize,
    words: W,
}

/// How a wait for the turn ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Turn {
    /// It is the client's turn in this cycle.
    Run(CycleInfo),
    /// Not yet: the client slept and woke, or the deadline passed. The caller looks whether it is to stop.
    Wait,
}

/// Wakes without a turn that a client accepts on its signal page between two cycles; a predecessor that
/// gives more is not allowed to keep it busy.
const SPURIOUS_WAKES: u32 = 16;

impl<W: AsMut<[u32]> + AsRef<[u32]>> TurnState<W> {
    /// A client that has not run yet; `words` are [`ORDERS_WORDS`](crate::shm::ORDERS_WORDS) words.
    pub fn new(words: W) -> Self {
        Self { last_cycle: 0, valid_from: 0, woken: 0, used: 0, words }
    }

    /// Begins anew with another server, whose cycles and plans are counted from the start.
    pub fn begin_anew(&mut self) {
        (self.last_cycle, self.valid_from, self.woken, self.used) = (0, 0, 0, 0);
    }

    /// The orders in force.
    pub fn orders(&self) -> OrdersReader<'_> {
        OrdersReader::new(self.words.as_ref().get(..self.used).unwrap_or(&[]))
    }

    fn refresh(&mut self, orders: &Orders, plan: u64) -> bool {
        let mut copy =
            OrdersCopy { valid_from: &mut self.valid_from, used: &mut self.used, words: self.words.as_mut() };
        orders.copy_for(plan, &mut copy)
    }

    /// Looks whether it is the client's turn, and sleeps at most until `deadline_ns` if it is not.
    ///
    /// `spurious` counts wakes without a turn since the last cycle; the caller keeps it. A request that the
    /// caller looks for between two calls, and that comes with a `wake_up`, is never slept over.
    pub fn next(
        &mut self,
        pages: Pages<'_>,
        deadline_ns: Option<u64>,
        spurious: &mut u32,
        park: &impl Park,
    ) -> Turn {
        let turn = self.look(pages, deadline_ns, spurious, park);
        self.woken = pages.signals.wake_count();
        turn
    }

    fn look(
        &mut self,
        pages: Pages<'_>,
        deadline_ns: Option<u64>,
        spurious: &mut u32,
        park: &impl Park,
    ) -> Turn {
        // Both words before anything that they announce: a change after this makes the sleep return.
        // The signals' first, counted when the last look ended: whoever sees a signal of a cycle then sees
        // that cycle released.
        let woken = self.woken;
        let released = pages.engine.cycle();
        let Some(info) = pages.engine.info() else {
            // The driver stands before a release, which wakes whoever sleeps on the cycle's word.
            pages.engine.sleep(released, deadline_ns, park);
            return Turn::Wait;
        };
        let known = self.refresh(pages.orders, info.plan);
        let in_plan = known && self.orders().runs();
        let edges = self.orders().edges();
        let fresh = in_plan && info.cycle == released && info.cycle != self.last_cycle;
        if fresh && pages.signals.ready(info.cycle, edges) {
            self.last_cycle = info.cycle;
            *spurious = 0;
            return Turn::Run(info);
        }
        // Without orders, because there are none yet or this thread is so late that they were replaced,
        // the next release is the news: it is a newer plan's.
        if !known || (in_plan && edges == Edges::NONE) || *spurious > SPURIOUS_WAKES {
            *spurious = 0;
            pages.engine.sleep(released, deadline_ns, park);
        } else {
            *spurious += 1;
            pages.signals.sleep(woken, deadline_ns, park);
        }
        Turn::Wait
    }
}

/// Signals a follower that this client has finished `cycle`, and wakes it if it was the last to do so.
pub fn signal_follower(page: &SignalPage, order: FollowerOrder, cycle: u32, now_ns: u64, park: &impl Park) {
    let Some(edges) = Edges::new(order.edges) else { return };
    if page.signal(cycle, edges, order.edge) {
        page.note_signaled(cycle, now_ns);
        page.wake_up(park);
    }
}
