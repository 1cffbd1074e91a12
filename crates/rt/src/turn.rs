//! A client's side of a cycle: sleep until it is its turn, and pass the turn on.
//!
//! Everything here runs on the client's process thread.

use crate::park::{Park, Sleepers};
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
}

/// The client's signal pages: one is in use, and another may take its place with a later plan.
pub trait SignalPages {
    /// The page that orders call `place`; `None` if there is none. Thread: cycle.
    fn page(&self, place: u32) -> Option<&SignalPage>;

    /// Takes the pages that have come since. Thread: cycle.
    fn refresh(&mut self);
}

/// Memory of a process thread from cycle to cycle; `words` is allocated before the first.
#[derive(Debug, Default)]
pub struct TurnState<W> {
    /// The cycle that the client ran last: it never runs one twice, whoever wakes it.
    pub last_cycle: u32,
    /// First plan for which the copied orders hold.
    pub valid_from: u64,
    /// The last plan for which that was looked up: what holds for it does not change.
    known_for: u64,
    /// Wake-ups counted when the last look ended: what came after it keeps the next look from sleeping.
    woken: u32,
    /// ... on the page of the orders that held from this plan on.
    counted_for: u64,
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
        Self { last_cycle: 0, valid_from: 0, known_for: 0, woken: 0, counted_for: 0, used: 0, words }
    }

    /// Begins anew with another server, whose cycles and plans are counted from the start.
    pub fn begin_anew(&mut self) {
        (self.last_cycle, self.valid_from, self.known_for, self.used) = (0, 0, 0, 0);
        (self.woken, self.counted_for) = (0, 0);
    }

    /// The orders in force.
    pub fn orders(&self) -> OrdersReader<'_> {
        OrdersReader::new(self.words.as_ref().get(..self.used).unwrap_or(&[]))
    }

    #[inline]
    fn refresh(&mut self, orders: &Orders, plan: u64) -> bool {
        // No plan is number 0.
        plan != 0 && plan == self.known_for || self.look_up(orders, plan)
    }

    #[cold]
    fn look_up(&mut self, orders: &Orders, plan: u64) -> bool {
        let mut copy =
            OrdersCopy { valid_from: &mut self.valid_from, used: &mut self.used, words: self.words.as_mut() };
        let known = orders.copy_for(plan, &mut copy);
        self.known_for = if known { plan } else { 0 };
        known
    }

    /// Looks whether it is the client's turn, and sleeps if it is not: until it is woken, and at most for `patience_ns` if
    /// it does not know where that will be.
    ///
    /// `spurious` counts wakes without a turn since the last cycle; the caller keeps it. A request that the
    /// caller looks for between two calls, and that comes with a wake-up of the client's page, is never slept over; one that
    /// comes with a wake-up of the group may be, as the group's word does not count them.
    pub fn next(
        &mut self,
        pages: Pages<'_>,
        signals: &mut impl SignalPages,
        patience_ns: u64,
        spurious: &mut u32,
        park: &impl Park,
    ) -> Turn {
        let turn = self.look(pages, signals, patience_ns, spurious, park);
        // 0 of a page that is not there: no sleep on it before it was counted.
        self.woken = signals.page(self.orders().page()).map_or(0, SignalPage::wake_count);
        self.counted_for = self.valid_from;
        turn
    }

    fn look(
        &mut self,
        pages: Pages<'_>,
        signals: &mut impl SignalPages,
        patience_ns: u64,
        spurious: &mut u32,
        park: &impl Park,
    ) -> Turn {
        // Both words before anything that they announce: a change after this makes the sleep return.
        // The signals' first, counted when the last look ended: whoever sees a signal of a cycle then sees
        // that cycle released.
        let woken = self.woken;
        let released = pages.engine.cycle();
        if released == self.last_cycle
            && self.counted_for == self.valid_from
            && *spurious <= SPURIOUS_WAKES
            && self.orders().edges() != Edges::NONE
            && let Some(page) = signals.page(self.orders().page())
        {
            // It has run the newest cycle, and whatever comes after that counts a wake-up here.
            *spurious += 1;
            page.sleep(woken, None, park);
            return Turn::Wait;
        }
        let sleep_a_while = || {
            let deadline_ns = park.now_ns().saturating_add(patience_ns);
            pages.engine.sleep(Sleepers::on(None), released, Some(deadline_ns), park);
        };
        let Some(info) = pages.engine.info() else {
            // The driver stands before a release, which wakes whoever sleeps on the cycle's word.
            sleep_a_while();
            return Turn::Wait;
        };
        let known = self.refresh(pages.orders, info.plan);
        // After the orders: they name a page when it is on its way to this thread already.
        signals.refresh();
        let page = if known { signals.page(self.orders().page()) } else { None };
        // Without orders, because there are none yet or this thread is so late that they were replaced,
        // or with some so old that their page was taken back, the next release is the news: it is a newer plan's.
        let Some(page) = page else {
            *spurious = 0;
            sleep_a_while();
            return Turn::Wait;
        };
        let (in_plan, edges) = (self.orders().runs(), self.orders().edges());
        let fresh = in_plan && info.cycle == released && info.cycle != self.last_cycle;
        if fresh && page.ready(info.cycle, edges) {
            self.last_cycle = info.cycle;
            *spurious = 0;
            return Turn::Run(info);
        }
        // Without a deadline where there need not be one: it costs the kernel a tenth of a hop.
        if in_plan && edges == Edges::NONE {
            // The next release, or whoever wants this thread and does not let go before it has what it wants.
            *spurious = 0;
            pages.engine.sleep(Sleepers::on(self.orders().cpu()), released, None, park);
        } else if *spurious > SPURIOUS_WAKES {
            *spurious = 0;
            sleep_a_while();
        } else if self.counted_for == self.valid_from {
            *spurious += 1;
            // Whoever wants anything counts a wake-up here.
            page.sleep(woken, None, park);
        }
        // Otherwise the orders are new, and may name another page than the one that `woken` was counted on: the
        // next look counts from the end of this one.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::ORDERS_WORDS;

    #[test]
    fn orders_are_looked_up_once_a_plan_and_again_while_they_are_not_there() {
        let orders = Orders::default();
        let mut state = TurnState::new(std::vec![0; ORDERS_WORDS]);
        assert!(!state.refresh(&orders, 0) && !state.refresh(&orders, 4), "none yet");
        assert!(orders.publish(3, &[30]));
        assert!(state.refresh(&orders, 4) && state.valid_from == 3);
        assert!(orders.publish(5, &[50]));
        assert!(state.refresh(&orders, 6) && state.valid_from == 5);
        assert!(orders.publish(8, &[80]));
        assert!(!state.refresh(&orders, 4) && !state.refresh(&orders, 4), "its orders are gone");
        assert!(state.refresh(&orders, 8) && state.valid_from == 8);
        state.begin_anew();
        assert!(state.refresh(&orders, 6) && state.valid_from == 5, "another server's");
    }
}
