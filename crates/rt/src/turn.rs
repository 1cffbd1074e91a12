//! A client's side of a cycle: sleeping until it is its turn, and passing the turn on.
//!
//! Everything here runs on the client's process thread.

mod early;
#[cfg(all(test, not(loom)))]
mod tests;

use self::early::EarlyWake;
use crate::park::Park;
use crate::shm::{
    AssignmentCopy, AssignmentReader, Assignments, CycleInfo, Edges, EngineSegment, FollowerEdge,
    OwnPage, SignalPage,
};

/// The shared pages through which a client takes part in cycles.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'a> {
    /// The server's segment.
    pub engine: &'a EngineSegment,
    /// The client's assignments.
    pub assignments: &'a Assignments,
    /// The client's own page.
    pub own: &'a OwnPage,
}

/// A client's signal pages: one in use, and another that may replace it with a later plan.
pub trait SignalPages {
    /// Returns the page to which an assignment refers as `place`; `None` if there is none. Thread:
    /// cycle.
    fn page(&self, place: u32) -> Option<&SignalPage>;

    /// Takes over pages that were mapped since the last call. Thread: cycle.
    fn refresh(&mut self);
}

/// A process thread's state from cycle to cycle. `words` is allocated before the first cycle.
#[derive(Debug, Default)]
pub struct TurnState<W> {
    /// The last cycle that the client ran. It never runs a cycle twice, however often it is woken.
    pub last_cycle: u32,
    /// First plan for which the copied assignment is valid.
    pub valid_from: u64,
    /// The last plan that was looked up; its assignment does not change.
    known_for: u64,
    /// Wake-ups counted at the end of the last poll. A later one keeps the next poll from sleeping.
    woken: u32,
    /// First plan of the assignment whose signal page `woken` was read from.
    counted_for: u64,
    /// When a sleep on the signal page ends without a wake-up, ns; `None`: never. 0, which is at
    /// once, until the first cycle.
    sleeps_until_ns: Option<u64>,
    early: EarlyWake,
    used: usize,
    words: W,
}

/// The result of waiting for the turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Turn {
    /// It is the client's turn in this cycle.
    Run(CycleInfo),
    /// It is not the client's turn yet: the client slept and woke, or the deadline passed. The
    /// caller checks whether to stop.
    Wait,
}

/// Wakes without a turn that a client accepts on its signal page between two cycles, so that a
/// predecessor cannot keep it busy with more of them.
const SPURIOUS_WAKES: u32 = 16;

/// How long a client sleeps that cannot know yet what it waits for.
const BRIEFLY_NS: u64 = 1_000_000;

/// How long a client with too many wakes without a turn pauses at most, whenever the next cycle is
/// due.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;

impl<W: AsMut<[u32]> + AsRef<[u32]>> TurnState<W> {
    /// Creates the state of a client that has not run yet. `words` has
    /// [`ASSIGNMENT_WORDS`](crate::shm::ASSIGNMENT_WORDS) words.
    pub fn new(words: W) -> Self {
        Self {
            last_cycle: 0,
            valid_from: 0,
            known_for: 0,
            woken: 0,
            counted_for: 0,
            sleeps_until_ns: Some(0),
            early: EarlyWake::default(),
            used: 0,
            words,
        }
    }

    /// Resets the state for another server, which counts its own cycles and plans.
    pub fn reset(&mut self) {
        (self.last_cycle, self.valid_from, self.known_for, self.used) = (0, 0, 0, 0);
        (self.woken, self.counted_for) = (0, 0);
        self.sleeps_until_ns = Some(0);
        self.early = EarlyWake::default();
    }

    /// Returns the assignment in force.
    pub fn assignment(&self) -> AssignmentReader<'_> {
        AssignmentReader::new(self.words.as_ref().get(..self.used).unwrap_or(&[]))
    }

    #[inline]
    fn refresh(&mut self, assignments: &Assignments, plan: u64) -> bool {
        // Plans are numbered from 1.
        // MUTATION: refresh.assignments_never_expire
        plan != 0 && plan == self.known_for || self.look_up(assignments, plan)
    }

    #[cold]
    fn look_up(&mut self, assignments: &Assignments, plan: u64) -> bool {
        let mut copy = AssignmentCopy {
            valid_from: &mut self.valid_from,
            used: &mut self.used,
            words: self.words.as_mut(),
        };
        let known = assignments.copy_for(plan, &mut copy);
        self.known_for = if known { plan } else { 0 };
        known
    }

    /// Returns [`Turn::Run`] if it is the client's turn; otherwise sleeps once.
    ///
    /// A sleep on the signal page, on which every predecessor can sleep and wake, ends after about
    /// `patience_ns` even without a wake-up: a predecessor can take the sleeper away from the page.
    /// `None` where the operator trusts all programs: arming a timer takes a tenth of a hop.
    ///
    /// `spurious` counts wakes without a turn since the last cycle; the caller stores it. A request
    /// that the caller checks between two calls is never missed if its sender then wakes the
    /// client's page. It may be missed if the sender only wakes the client's assignments, which do
    /// not count wake-ups.
    pub fn next(
        &mut self,
        pages: Pages<'_>,
        signals: &mut impl SignalPages,
        patience_ns: Option<u64>,
        spurious: &mut u32,
        park: &impl Park,
    ) -> Turn {
        let turn = self.poll(pages, signals, patience_ns, spurious, park);
        // Without a page the count is 0, and the client does not sleep on a page that was not
        // counted.
        self.woken = signals.page(self.assignment().page()).map_or(0, SignalPage::wake_count);
        self.counted_for = self.valid_from;
        turn
    }

    fn poll(
        &mut self,
        pages: Pages<'_>,
        signals: &mut impl SignalPages,
        patience_ns: Option<u64>,
        spurious: &mut u32,
        park: &impl Park,
    ) -> Turn {
        // The words to sleep on are read before what they announce, so that a later change makes
        // the sleep return. The signals' word was counted when the last poll ended: a thread that
        // sees a signal of a cycle, or its turn, then also sees that cycle released.
        // MUTATION: next.forgets_wake_ups_between_polls
        let woken = self.woken;
        let turn = pages.assignments.turn();
        // MUTATION: next.reads_cycle_before_wake_count
        let released = pages.engine.cycle();
        if released == self.last_cycle
            && self.counted_for == self.valid_from
            && *spurious <= SPURIOUS_WAKES
        {
            // The client has run the newest cycle. The next event gives it its turn, or counts a
            // wake-up on its page.
            let assignment = self.assignment();
            if assignment.edges() == Edges::NONE {
                if self.valid_from != 0 && assignment.runs() {
                    self.sleep_for_turn(pages, turn, park);
                    return Turn::Wait;
                }
            } else if let Some(page) = signals.page(assignment.page()) {
                self.sleep_on(page, woken, patience_ns, spurious, park);
                return Turn::Wait;
            }
        }
        let sleep_briefly = || {
            let until_ns = park.now_ns().saturating_add(BRIEFLY_NS);
            pages.assignments.sleep_briefly(turn, until_ns, park);
        };
        let Some(info) = pages.engine.info() else {
            // The driver is about to release a cycle.
            // MUTATION: next.sleeps_for_ever_without_info
            sleep_briefly();
            return Turn::Wait;
        };
        let known = self.refresh(pages.assignments, info.plan);
        // After the assignment: a page that it names is already on its way to this thread.
        signals.refresh();
        // MUTATION: next.uses_first_page_only, next.sleeps_on_page_without_assignments
        let page = if known { signals.page(self.assignment().page()) } else { None };
        // There is no assignment yet, or this thread is so late that its assignment was replaced,
        // or it is so old that its page was taken back. In each case a newer plan is about to be
        // released.
        let Some(page) = page else {
            *spurious = 0;
            sleep_briefly();
            return Turn::Wait;
        };
        let assignment = self.assignment();
        let (in_plan, edges) = (assignment.runs(), assignment.edges());
        let wakes_early = assignment.wakes_early();
        // MUTATION: next.runs_cycle_twice
        let fresh = in_plan && info.cycle == released && info.cycle != self.last_cycle;
        if fresh && page.ready(info.cycle, edges) {
            self.last_cycle = info.cycle;
            self.sleeps_until_ns = patience_ns.map(|ns| info.woken_ns.saturating_add(ns));
            self.early.plan(wakes_early, info.next_wakeup_ns);
            *spurious = 0;
            return Turn::Run(info);
        }
        // MUTATION: next.sleeps_by_count_of_replaced_page
        if in_plan && edges == Edges::NONE {
            // The next release wakes it, or a thread that needs it and repeats the wake-up until it
            // responds. No deadline: no other program can name the word.
            *spurious = 0;
            self.sleep_for_turn(pages, turn, park);
        } else if *spurious > SPURIOUS_WAKES {
            *spurious = 0;
            let now_ns = park.now_ns();
            // At least a while, in case that cycle is overdue.
            let next_ns = info.next_wakeup_ns.max(now_ns.saturating_add(BRIEFLY_NS));
            let until_ns = next_ns.min(now_ns.saturating_add(LONGEST_PAUSE_NS));
            pages.assignments.sleep_briefly(turn, until_ns, park);
        } else if self.counted_for == self.valid_from {
            // Every other event counts a wake-up here.
            self.sleep_on(page, woken, patience_ns, spurious, park);
        }
        // Otherwise the assignment is new, and may name another page than the one on which `woken`
        // was counted: the next poll uses the count taken at the end of this one.
        Turn::Wait
    }

    /// Sleeps until the driver gives another turn than `turn`.
    #[inline]
    fn sleep_for_turn(&mut self, pages: Pages<'_>, turn: u32, park: &impl Park) {
        let Some(at_ns) = self.early.take() else { return pages.assignments.sleep(turn, park) };
        pages.assignments.sleep_briefly(turn, at_ns, park);
        let last_cycle = self.last_cycle;
        self.early.wait(at_ns, park, || pages.engine.cycle() != last_cycle);
    }

    // Inlined with the rest of a cycle, so that it lies on the same pages.
    #[inline(always)]
    fn sleep_on(
        &mut self,
        page: &SignalPage,
        woken: u32,
        patience_ns: Option<u64>,
        spurious: &mut u32,
        park: &impl Park,
    ) {
        // The first sleep after a cycle takes its deadline from that cycle, without reading the
        // clock.
        let early_ns = self.early.take();
        let deadline_ns = match (early_ns, *spurious) {
            (Some(early_ns), _) => Some(early_ns),
            (None, 0) => self.sleeps_until_ns,
            (None, _) => patience_ns.map(|ns| park.now_ns().saturating_add(ns)),
        };
        *spurious += 1;
        // MUTATION: next.sleeps_without_deadline
        page.sleep(woken, deadline_ns, park);
        if let Some(early_ns) = early_ns {
            self.early.wait(early_ns, park, || page.wake_count() != woken);
        }
    }
}

/// Signals a follower that this client has finished `cycle`, and wakes it if it was the last
/// predecessor to do so.
pub fn signal_follower(
    page: &SignalPage,
    follower: FollowerEdge,
    cycle: u32,
    now_ns: u64,
    park: &impl Park,
) {
    let Some(edges) = Edges::new(follower.edges) else { return };
    if page.signal(cycle, edges, follower.edge) {
        page.note_signaled(cycle, now_ns);
        page.wake_up(park);
    }
}
