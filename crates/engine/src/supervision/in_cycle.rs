//! What the driver thread does about a client that has not finished the cycle before.
//!
//! Everything here runs on the driver thread, after the clients of the new cycle were woken. Its
//! time is bounded by the number of clients in the plan; nothing allocates. Thread: cycle.
//!
//! | late for | it has begun the cycle | it has not begun it |
//! |---|---|---|
//! | 0 cycles (a predecessor is late: *starved*) | – | nothing: it is not its fault |
//! | 1 cycle | its followers go on after a quarter of the next cycle; it is demoted | its followers go on after a quarter; it keeps its priority, with which it catches up at once |
//! | 2 cycles | its followers go on at once; it is demoted | its followers go on at once |
//! | 3 cycles | as before | as before, and it is demoted: it works outside of cycles |
//! | more | as before | its followers go on at once |
//!
//! A demoted client runs under the ordinary scheduler, so that it keeps no CPU from other clients,
//! until it has finished. A client that has not begun is most likely waiting for a CPU itself.

use rt::cycle::{has_finished, signal_for};
use rt::record::{ClientCycle, ClientRecord, Record};
use rt::shm::{CycleInfo, Recording};
use sys::futex::Futex;

use crate::plan::{Plan, PlanSeat};

/// A client that is late for the first time has this part of the next cycle to catch up, before its
/// followers go on without it.
const GRACE_DIVISOR: u64 = 4;

/// Returns how long a client that is late for the first time has to catch up, ns.
pub fn grace_ns(period_ns: u64) -> u64 {
    period_ns / GRACE_DIVISOR
}

/// A client that is late for this many cycles without having begun one is taken for one that works
/// outside of cycles.
const OUTSIDE_CYCLES: u32 = 3;

/// Whether the followers of a client go on without it now.
fn is_given_up(late_cycles: u32, is_grace_over: bool) -> bool {
    late_cycles > 1 || (late_cycles == 1 && is_grace_over)
}

/// Whether a client that was given up loses its priority.
fn is_demoted(late_cycles: u32, has_begun: bool) -> bool {
    has_begun || late_cycles == OUTSIDE_CYCLES
}

/// Whether the client of a seat has finished the cycle before, or already the one that has begun
/// since.
fn has_ended(seat: &PlanSeat, before: u32, now: u32) -> bool {
    has_finished(seat, before) || has_finished(seat, now)
}

/// Notes which clients had not finished `cycle` when the driver had to go on without them.
pub fn note_overdue<'a>(seats: impl Iterator<Item = &'a PlanSeat>, cycle: u32) {
    for seat in seats.filter(|seat| !has_finished(*seat, cycle)) {
        seat.health.note_overdue();
    }
}

/// Counts how many cycles in a row each client of the ended plan has not finished in time: before
/// the next one begins, and, where the driver waits for it, while the driver could wait. Returns
/// the number of clients that have not finished the last one in time by their own fault.
///
/// A client that never began it because a predecessor is late is not late itself, nor is one that
/// finished too late to be played because of that. The seats are in the order of the graph, so a
/// predecessor is judged before its followers.
pub fn count_late(ended: &Plan, before: u32, now: u32) -> u32 {
    if before == 0 {
        return 0;
    }
    for seat in &ended.seats {
        seat.health.set_starved(false);
    }
    let mut late = 0;
    for seat in &ended.seats {
        let has_ended = has_ended(seat, before, now);
        let is_overdue = seat.health.take_overdue();
        if has_ended && !is_overdue {
            seat.health.forget_late_cycles();
            continue;
        }
        for follower in seat.followers.iter().filter_map(|follower| ended.seats.get(follower.seat))
        {
            follower.health.set_starved(true);
        }
        let is_victim = seat.health.is_starved() && (has_ended || seat.own.awake() != before);
        if !is_victim {
            seat.health.count_late_cycle();
            late += 1;
            if is_overdue {
                seat.health.count_overdue_cycle();
            }
        } else if has_ended {
            seat.health.forget_late_cycles();
        }
    }
    late
}

/// Records every client's times of the cycle that has ended.
pub fn record_clients(
    plan: &Plan,
    ended: CycleInfo,
    released_ns: u64,
    now_cycle: u32,
    recording: &Recording,
) {
    if ended.cycle == 0 {
        return;
    }
    for seat in &plan.seats {
        let (client, own, signals, edges) = (seat.client, &**seat.own, &**seat.signals, seat.edges);
        let witness = ClientCycle { client, own, signals, edges };
        let record = ClientRecord {
            late_cycles: u16::try_from(seat.health.late_cycles()).unwrap_or(u16::MAX),
            starved: seat.health.is_starved(),
            ..ClientRecord::of(witness, ended, released_ns, now_cycle)
        };
        recording.push(&Record::Client(record).to_words());
    }
}

/// Signals the followers of late clients for them, and demotes the clients: the ones that were late
/// before at once, the others if they have not caught up after a part of the cycle.
pub fn go_on_without_late(seats: &[PlanSeat], info: CycleInfo, before: u32) {
    if give_up(seats, info.cycle, before, false) == 0 {
        return;
    }
    let grace_ns = grace_ns(info.next_wakeup_ns.saturating_sub(info.wakeup_ns));
    sys::clock::sleep_until(info.woken_ns.saturating_add(grace_ns));
    give_up(seats, info.cycle, before, true);
}

/// Goes on without late clients; returns the number of those that have time left to catch up.
fn give_up(seats: &[PlanSeat], cycle: u32, before: u32, is_grace_over: bool) -> u32 {
    let mut others = 0;
    for (index, seat) in seats.iter().enumerate() {
        let late_cycles = seat.health.late_cycles();
        if late_cycles == 0 || has_ended(seat, before, cycle) {
            continue;
        }
        if !is_given_up(late_cycles, is_grace_over) {
            others += 1;
            continue;
        }
        // MUTATION: give_up.followers_wait
        signal_for(seats, index, cycle, &Futex);
        if !has_ended(seat, before, cycle) {
            let has_begun = seat.own.awake() != seat.own.finished();
            if is_demoted(late_cycles, has_begun) {
                seat.demote();
            }
            // A writable signal page may have been made to look awake.
            seat.signals.wake_unconditionally(&Futex);
            seat.assignments.wake(&Futex);
        }
    }
    others
}

/// Goes on without clients whose socket has closed. Returns whether others still run the cycle.
pub fn go_on_without_departed(seats: &[PlanSeat], cycle: u32) -> bool {
    let mut others_run = false;
    for (index, seat) in seats.iter().enumerate() {
        if seat.health.has_departed() {
            signal_for(seats, index, cycle, &Futex);
        } else {
            others_run |= seat.health.late_cycles() == 0 && !has_finished(seat, cycle);
        }
    }
    others_run
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rt::cycle::Follower;
    use rt::shm::Edges;
    use sys::memory::Shared;

    use super::*;
    use crate::signal_pages::SignalPages;

    fn seat(client: u32, followers: Vec<Follower>) -> PlanSeat {
        let (own, _) = Shared::for_writers("test-own").unwrap();
        let (assignments, _) = Shared::for_readers("test-assignments").unwrap();
        let signals = SignalPages::create().unwrap();
        PlanSeat {
            client,
            own: Arc::new(own),
            assignments: Arc::new(assignments),
            signals: Arc::clone(&signals.current().shared),
            left: None,
            edges: Edges::NONE,
            followers,
            enters: false,
            health: Arc::default(),
            thread: None,
            controls: false,
            feeds_playback: true,
        }
    }

    /// A chain of three clients.
    fn chain() -> Plan {
        let follower = |seat| vec![Follower { seat, edge: 0 }];
        let seats = vec![seat(7, follower(1)), seat(8, follower(2)), seat(9, Vec::new())];
        Plan { seats, ..Plan::default() }
    }

    fn late_cycles(plan: &Plan) -> Vec<u32> {
        plan.seats.iter().map(|seat| seat.health.late_cycles()).collect()
    }

    #[test]
    fn a_client_that_waits_for_a_late_predecessor_is_not_late() {
        let plan = chain();
        plan.seats[0].own.begin(5, 1);
        assert_eq!(count_late(&plan, 5, 6), 1);
        assert_eq!(late_cycles(&plan), [1, 0, 0]);
        let starved: Vec<bool> = plan.seats.iter().map(|seat| seat.health.is_starved()).collect();
        assert_eq!(starved, [false, true, true]);
    }

    #[test]
    fn a_client_that_has_begun_is_late_even_if_its_predecessor_is() {
        let plan = chain();
        plan.seats[0].own.begin(5, 1);
        plan.seats[1].own.begin(5, 2);
        assert_eq!(count_late(&plan, 5, 6), 2);
        assert_eq!(late_cycles(&plan), [1, 1, 0]);
    }

    #[test]
    fn a_client_that_ends_after_the_driver_has_waited_for_it_is_late() {
        let plan = chain();
        // It was late before.
        plan.seats[2].health.count_late_cycle();
        for cycle in [5, 6] {
            plan.seats[0].own.finish(cycle, 2, 0);
            note_overdue(plan.seats.iter(), cycle);
            for seat in &plan.seats[1..] {
                seat.own.begin(cycle, 1);
                seat.own.finish(cycle, 2, 0);
            }
            assert_eq!(count_late(&plan, cycle, cycle + 1), 1, "its follower is its victim");
        }
        assert_eq!(late_cycles(&plan), [0, 2, 0]);
        let overdue: Vec<u32> =
            plan.seats.iter().map(|seat| seat.health.overdue_cycles()).collect();
        assert_eq!(overdue, [0, 2, 0]);
        plan.seats.iter().for_each(|seat| seat.own.finish(7, 2, 0));
        assert_eq!(count_late(&plan, 7, 8), 0, "that was another cycle");
        assert_eq!(late_cycles(&plan), [0, 0, 0]);
    }

    #[test]
    fn late_cycles_are_counted_in_a_row() {
        let plan = chain();
        plan.seats[0].own.begin(5, 1);
        (5..8).for_each(|cycle| assert_eq!(count_late(&plan, cycle, cycle + 1), 1));
        assert_eq!(late_cycles(&plan), [3, 0, 0]);
        plan.seats.iter().for_each(|seat| seat.own.finish(8, 2, 0));
        assert_eq!(count_late(&plan, 8, 9), 0);
        assert_eq!(late_cycles(&plan), [0, 0, 0]);
    }

    #[test]
    fn a_client_that_has_finished_the_next_cycle_already_is_in_time() {
        let plan = chain();
        plan.seats.iter().for_each(|seat| seat.own.finish(6, 2, 0));
        assert_eq!(count_late(&plan, 5, 6), 0);
    }

    #[test]
    fn a_first_late_client_has_a_quarter_of_the_next_cycle() {
        assert_eq!(grace_ns(4_000), 1_000);
        assert!(!is_given_up(1, false) && is_given_up(1, true));
        assert!(is_given_up(2, false), "it had its quarter");
    }

    #[test]
    fn only_a_late_client_that_has_begun_its_cycle_is_demoted() {
        for late_cycles in 1..10 {
            assert!(is_demoted(late_cycles, true), "{late_cycles}");
            assert_eq!(is_demoted(late_cycles, false), late_cycles == 3, "{late_cycles}");
        }
    }
}
