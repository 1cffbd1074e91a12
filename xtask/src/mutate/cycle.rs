//! Mutations of the cycle: how it starts, is passed on, and is slept and waited for.

use super::edit::{ACQUIRE_RELAXED, Edit::*, RELEASE_RELAXED};
use super::models::{
    AWAKE_IN_PLACE_OF, CARRIES_ON, CHAIN_RUNS, FOLLOWER_WAKES, GAINS_PREDECESSOR,
    LATE_FOR_ASSIGNMENT, LONG_UPTIME, LOSES_PREDECESSORS, MOVES_PAGE, RELEASED, RUNS_ONCE,
    SAME_WAIT, STRAGGLERS, TAKEN_OFF, WORDS_ADD_UP,
};
use super::{Mutation, mutation};

pub(super) const CYCLE: &[Mutation] = &[
    mutation("wake_up.without_fence", Delete, FOLLOWER_WAKES).short(),
    mutation("sleep.without_fence", Delete, FOLLOWER_WAKES),
    mutation("wake_up.count_relaxed", RELEASE_RELAXED, FOLLOWER_WAKES),
    mutation("wake_count.relaxed", ACQUIRE_RELAXED, FOLLOWER_WAKES),
    mutation("wake_up.count_unchanged", Replace("fetch_add(1", "fetch_add(0"), FOLLOWER_WAKES),
    mutation("wake_up.condition_inverted", Replace("!= 0", "== 0"), FOLLOWER_WAKES),
    mutation(
        "set_bit.tag_ignored",
        Replace("before & !u64::from(u32::MAX) != tag(cycle) || ", ""),
        STRAGGLERS,
    )
    .short(),
    mutation("set_bit.success_relaxed", RELEASE_RELAXED, FOLLOWER_WAKES),
    mutation("set_bit.load_relaxed", ACQUIRE_RELAXED, CARRIES_ON),
    mutation("set_bit.failure_relaxed", ACQUIRE_RELAXED, CARRIES_ON),
    mutation(
        "signal.stops_at_full_word",
        Replace("filled = false", "return false"),
        AWAKE_IN_PLACE_OF,
    )
    .short(),
    mutation("ready.relaxed", ACQUIRE_RELAXED, WORDS_ADD_UP),
    mutation("release.relaxed", RELEASE_RELAXED, RELEASED),
    mutation("cycle.relaxed", ACQUIRE_RELAXED, RELEASED),
    mutation(
        "begin.armed_after_release",
        After("for seat in seats { seat.signals().arm(info.cycle, seat.edges()); }"),
        CHAIN_RUNS,
    ),
    mutation("begin.roots_not_woken", Delete, SAME_WAIT).short(),
    mutation("give_turn.relaxed", RELEASE_RELAXED, SAME_WAIT),
    mutation("turn.relaxed", ACQUIRE_RELAXED, SAME_WAIT),
    mutation("begin.entering_clients_not_woken_on_page", Delete, LOSES_PREDECESSORS),
    mutation("next.sleeps_without_deadline", Replace("deadline_ns,", "None,"), TAKEN_OFF).short(),
    mutation(
        "begin.entering_clients_not_woken",
        Replace("seat.enters()", "seat.enters() && seats.is_empty()"),
        GAINS_PREDECESSOR,
    )
    .short(),
    mutation(
        "signal_for.trusts_skipped_client",
        Replace("seat.signals().ready(cycle, seat.edges())", "seat.edges() == Edges::NONE"),
        AWAKE_IN_PLACE_OF,
    ),
    mutation(
        "has_finished.compares_by_distance",
        Replace("finished() == cycle", "finished().wrapping_sub(cycle) < 1 << 31"),
        LONG_UPTIME,
    ),
    mutation("begin.replaced_page_not_woken", Delete, MOVES_PAGE).short(),
    mutation(
        "next.sleeps_by_count_of_replaced_page",
        Replace("self.counted_for == self", "self.counted_for <= self"),
        MOVES_PAGE,
    ),
    mutation(
        "next.uses_first_page_only",
        Replace("page(self.assignment().page())", "page(0)"),
        MOVES_PAGE,
    ),
    mutation(
        "refresh.assignments_never_expire",
        Replace("plan != 0 && plan == self.known_for", "self.known_for != 0"),
        MOVES_PAGE,
    ),
    mutation(
        "next.reads_cycle_before_wake_count",
        After(
            "let woken = signals.page(self.assignment().page()).map_or(0, SignalPage::wake_count);",
        ),
        FOLLOWER_WAKES,
    )
    .short(),
    mutation(
        "next.forgets_wake_ups_between_polls",
        Replace(
            "self.woken",
            "signals.page(self.assignment().page()).map_or(0, SignalPage::wake_count)",
        ),
        RUNS_ONCE,
    ),
    mutation("next.runs_cycle_twice", Replace(" && info.cycle != self.last_cycle", ""), SAME_WAIT),
    mutation(
        "next.sleeps_on_page_without_assignments",
        Replace("if known", "if info.plan > 0"),
        LATE_FOR_ASSIGNMENT,
    ),
    mutation(
        "next.sleeps_for_ever_without_info",
        Replace("sleep_briefly()", "pages.assignments.sleep(turn, park)"),
        SAME_WAIT,
    ),
];
