//! The driver's side of a cycle: arm, release, wake, and at its end see who was late.
//!
//! Everything here runs on the server's driver thread, in time proportional to the clients that
//! run.

use crate::park::{Park, WakeMask};
use crate::shm::{CycleInfo, Edges, EngineSegment, OwnPage, SignalPage};

/// What the driver knows of one client that runs in a plan.
pub trait Seat {
    /// The client's own page.
    fn own(&self) -> &OwnPage;
    /// The client's signal page.
    fn signals(&self) -> &SignalPage;
    /// The signal page that it had in the plan before, if that was another: it may sleep there.
    fn previous_signals(&self) -> Option<&SignalPage>;
    /// Its predecessors in the plan.
    fn edges(&self) -> Edges;
    /// Its followers in the plan.
    fn followers(&self) -> &[Follower];
    /// Whether it slept on another word in the plan before, so that the first cycle must wake it by
    /// itself.
    fn enters(&self) -> bool;
}

/// A follower in a plan: its seat, and which of its edges comes from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follower {
    /// Index among the plan's seats.
    pub seat: usize,
    /// Edge on the follower's signal page.
    pub edge: u32,
}

/// The new_cycle of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct NewCycle {
    /// The cycle.
    pub info: CycleInfo,
    /// No cycle has run its plan before.
    pub first_of_plan: bool,
    /// The order in which clients are woken that wait for the driver alone.
    pub wakes: Wakes,
}

/// The order in which the driver wakes the clients that wait for it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakes([Option<WakeMask>; 2]);

impl Wakes {
    /// `first` before the rest, because another CPU takes long to wake up, and does so while those
    /// on the driver's own are woken.
    #[must_use]
    pub fn new(first: Option<WakeMask>) -> Self {
        // All are woken, wherever orders of an older plan have told them to sleep.
        // MUTATION: wakes.complement_not_woken
        Self([first, first.map_or(Some(WakeMask::ALL), WakeMask::complement)])
    }
}

impl Default for Wakes {
    fn default() -> Self {
        Self::new(None)
    }
}

/// Starts a cycle of a plan with `seats`.
///
/// Clients without predecessors sleep on the cycle's word and are woken in groups; the others are
/// woken by the last of their predecessors. One that cannot tell which it
/// is, because its plan is being replaced, sleeps on the cycle's word too. One whose signal page
/// was replaced is woken on the one that it has left.
pub fn begin<S: Seat>(engine: &EngineSegment, seats: &[S], new_cycle: NewCycle, park: &impl Park) {
    let NewCycle { info, first_of_plan, wakes } = new_cycle;
    for seat in seats {
        seat.signals().arm(info.cycle, seat.edges());
    }
    // MUTATION: begin.published_after_release
    engine.publish(info);
    // MUTATION: begin.armed_after_release
    engine.release(info.cycle);
    // MUTATION: begin.group_not_woken_without_roots
    wakes.0.into_iter().flatten().for_each(|sleepers| engine.wake_group(sleepers, park));
    if first_of_plan {
        // MUTATION: begin.entering_clients_not_woken
        for seat in seats.iter().filter(|seat| seat.enters()) {
            seat.signals().wake_up(park);
        }
        for page in seats.iter().filter_map(Seat::previous_signals) {
            // MUTATION: begin.replaced_page_not_woken
            page.wake_unconditionally(park);
        }
    }
}

/// Signals the followers of seat `skipped` in its place: it will not finish `cycle` in time.
///
/// Its outputs read as silence, because they are not marked for the cycle. A signal that it gives
/// itself later changes nothing.
pub fn signal_for<S: Seat>(seats: &[S], skipped: usize, cycle: u32, park: &impl Park) {
    for follower in seats.get(skipped).map_or(&[][..], Seat::followers) {
        let Some(seat) = seats.get(follower.seat) else { continue };
        if seat.signals().signal(cycle, seat.edges(), follower.edge) {
            seat.signals().note_signaled(cycle, park.now_ns());
        }
        // Even if the skipped client made it ready: it may have been stopped before it woke the
        // follower.
        // MUTATION: signal_for.trusts_skipped_client
        if seat.signals().ready(cycle, seat.edges()) {
            seat.signals().wake_up(park);
        }
    }
}

/// Whether the client has finished `cycle`, the newest one: it cannot have finished a later one,
/// and a page that stands at another number, however long the server runs, is of a client that has
/// not run.
pub fn has_finished<S: Seat>(seat: &S, cycle: u32) -> bool {
    // MUTATION: has_finished.compares_by_distance
    seat.own().finished() == cycle
}

/// Wakes from one client's page that a wait for the graph's end accepts before it looks at the next
/// client.
const TRIES: u32 = 4;

/// Sleeps until every seat has finished `cycle` or the deadline has passed; true if all have.
///
/// Waits on one client's page after the other, the one expected last first: by then most others
/// have finished, and no page is needed that several clients can write.
pub fn await_end<'a, S: Seat + 'a>(
    seats: impl DoubleEndedIterator<Item = &'a S>,
    cycle: u32,
    deadline_ns: u64,
    park: &impl Park,
) -> bool {
    seats.rev().filter(|seat| !has_finished(*seat, cycle)).fold(true, |all, seat| {
        let finished = seat.own().await_finish(cycle, deadline_ns, TRIES, park);
        all && finished
    })
}
