//! The driver's side of a cycle: arm, release, wake, and find out at its end which clients were
//! late.
//!
//! Everything here runs on the server's driver thread, in time proportional to the clients that
//! run.

use crate::park::Park;
use crate::shm::{Assignments, CycleInfo, Edges, EngineSegment, OwnPage, SignalPage};

/// What the driver knows about one client that runs in a plan.
pub trait Seat {
    /// The client's own page.
    fn own(&self) -> &OwnPage;
    /// The client's assignments, where it sleeps while it waits for the driver alone.
    fn assignments(&self) -> &Assignments;
    /// The client's signal page.
    fn signals(&self) -> &SignalPage;
    /// Its signal page in the plan before, if that was another one: it may sleep there.
    fn previous_signals(&self) -> Option<&SignalPage>;
    /// Its predecessors in the plan.
    fn edges(&self) -> Edges;
    /// Its followers in the plan.
    fn followers(&self) -> &[Follower];
    /// Whether it slept on another word in the plan before, so that the first cycle must wake it
    /// individually.
    fn enters(&self) -> bool;
}

/// A follower in a plan: its seat, and which of its edges comes from this client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follower {
    /// Index among the plan's seats.
    pub seat: usize,
    /// Edge on the follower's signal page.
    pub edge: u32,
}

/// A cycle that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct NewCycle<'a> {
    /// The cycle.
    pub info: CycleInfo,
    /// No cycle has run its plan before.
    pub first_of_plan: bool,
    /// The seats that wait for the driver alone, in the order in which they are woken: those on
    /// other CPUs come first, since another CPU takes longer to wake up.
    pub roots: &'a [usize],
}

/// Starts a cycle of a plan with `seats`.
///
/// A client without predecessors sleeps on its assignments, where only the server can wake it; the
/// others sleep on their signal pages and are woken by the last of their predecessors. A client
/// that slept elsewhere in the plan before is woken in both places, and one whose signal page was
/// replaced also on the old one.
pub fn begin<S: Seat>(
    engine: &EngineSegment,
    seats: &[S],
    new_cycle: NewCycle<'_>,
    park: &impl Park,
) {
    let NewCycle { info, first_of_plan, roots } = new_cycle;
    for seat in seats {
        seat.signals().arm(info.cycle, seat.edges());
    }
    engine.publish(info);
    // MUTATION: begin.armed_after_release
    engine.release(info.cycle);
    // MUTATION: begin.roots_not_woken
    for seat in roots.iter().filter_map(|root| seats.get(*root)) {
        seat.assignments().give_turn(info.cycle, park);
    }
    if first_of_plan {
        // MUTATION: begin.entering_clients_not_woken
        for seat in seats.iter().filter(|seat| seat.enters()) {
            seat.assignments().give_turn(info.cycle, park);
            // MUTATION: begin.entering_clients_not_woken_on_page
            seat.signals().wake_up(park);
        }
        for page in seats.iter().filter_map(Seat::previous_signals) {
            // MUTATION: begin.replaced_page_not_woken
            page.wake_unconditionally(park);
        }
    }
}

/// Signals the followers of seat `skipped` on its behalf: it will not finish `cycle` in time.
///
/// Its outputs read as silence, because they are not marked for the cycle. A signal that it gives
/// itself later changes nothing.
pub fn signal_for<S: Seat>(seats: &[S], skipped: usize, cycle: u32, park: &impl Park) {
    for follower in seats.get(skipped).map_or(&[][..], Seat::followers) {
        let Some(seat) = seats.get(follower.seat) else { continue };
        if seat.signals().signal(cycle, seat.edges(), follower.edge) {
            seat.signals().note_signaled(cycle, park.now_ns());
        }
        // Also if the skipped client made it ready: it may have been stopped before it woke the
        // follower.
        // MUTATION: signal_for.trusts_skipped_client
        if seat.signals().ready(cycle, seat.edges()) {
            seat.signals().wake_up(park);
        }
    }
}

/// Whether the client has finished `cycle`, the newest one. Compares for equality, so that the
/// number may wrap: no client can have finished a later cycle.
pub fn has_finished<S: Seat>(seat: &S, cycle: u32) -> bool {
    // MUTATION: has_finished.compares_by_distance
    seat.own().finished() == cycle
}

/// Wake-ups from one client's page that a wait for the graph's end accepts before it checks the
/// next client.
const TRIES: u32 = 4;

/// Sleeps until every seat has finished `cycle` or the deadline has passed; true if all have.
///
/// Waits on one client's page after the other, starting with the one that is expected to finish
/// last: by then most others have finished. No page that several clients can write is needed.
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
