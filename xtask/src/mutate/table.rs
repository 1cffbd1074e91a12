//! What is broken, and which model must see it.

/// One place of the crate, broken.
#[derive(Debug)]
pub(super) struct Mutation {
    /// What is wrong then.
    pub(super) name: &'static str,
    /// Under the crate's `src`.
    pub(super) file: &'static str,
    /// Text that is there exactly once.
    pub(super) old: &'static str,
    /// Text in its place.
    pub(super) new: &'static str,
    /// The model that must fail.
    pub(super) model: &'static str,
    /// Whether it is in the short selection.
    pub(super) short: bool,
}

const FOLLOWER_WAKES: &str = "a_follower_wakes_when_its_last_predecessor_has_finished_and_hears_them_all";
const WORDS_ADD_UP: &str = "predecessors_counted_in_different_words_are_all_heard";
const RELEASED: &str = "whoever_sees_a_cycle_released_sees_all_that_the_driver_did_before";
const CHAIN_RUNS: &str = "a_chain_runs_from_the_drivers_release_on_without_the_driver";
const RUNS_ONCE: &str = "a_signal_given_by_a_client_and_for_it_makes_its_follower_run_once";
const AWAKE_IN_PLACE_OF: &str =
    "once_the_driver_has_signaled_for_a_client_its_follower_is_awake_wherever_the_client_stands";
const CARRIES_ON: &str = "a_signal_given_for_a_client_carries_on_what_the_other_predecessors_wrote";
const STRAGGLERS: &str = "a_signal_of_the_cycle_before_never_counts_in_the_next";
const DRIVER_AWAITS: &str = "a_driver_that_awaits_clients_sleeps_until_they_have_finished_and_not_past_it";
const LONG_UPTIME: &str = "a_client_that_has_not_run_is_awaited_however_long_the_server_has_run";
const SLAB: &str = "whoever_sees_a_slab_finished_hears_its_samples";
const GAINS_PREDECESSOR: &str = "a_client_without_predecessors_that_gets_one_misses_no_cycle";
const LOSES_PREDECESSORS: &str = "a_client_that_loses_its_predecessors_misses_no_cycle";
const SAME_WAIT: &str = "a_client_that_waits_for_the_same_in_both_plans_misses_no_cycle";
const LATE_FOR_ORDERS: &str = "a_client_so_late_that_its_orders_were_replaced_obeys_the_newer_ones";
const ORDERS_WHOLE: &str = "a_client_that_copies_its_orders_never_gets_a_mixture_of_two_sets";
const ORDERS_IN_FORCE: &str = "orders_of_a_plan_withdrawn_before_any_cycle_leave_those_in_force_alone";
const SNAPSHOT: &str = "a_snapshot_is_never_half_old_and_half_new";
const ONE_OWNER: &str = "each_plan_is_run_or_comes_back_and_never_both";
const ASKED_IS_HEARD: &str = "what_two_threads_ask_is_heard_whoever_tells_last";
const POSITIONS_IN_ORDER: &str = "positions_are_heard_whole_and_in_their_order_and_the_last_one_always";
const RETIRED: &str = "a_retired_plan_comes_back_as_the_driver_left_it";

/// All mutations.
pub(super) const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "wake_up: no fence",
        file: "shm/signal.rs",
        old: "client sees the new count after its own fence.\n        fence(Ordering::SeqCst);",
        new: "client sees the new count after its own fence.",
        model: FOLLOWER_WAKES,
        short: true,
    },
    Mutation {
        name: "sleep: no fence",
        file: "shm/signal.rs",
        old: "// SeqCst: see `wake_up`.\n        fence(Ordering::SeqCst);",
        new: "",
        model: FOLLOWER_WAKES,
        short: false,
    },
    Mutation {
        name: "wake_up: count relaxed",
        file: "shm/signal.rs",
        old: "self.wake.fetch_add(1, Ordering::Release)",
        new: "self.wake.fetch_add(1, Ordering::Relaxed)",
        model: FOLLOWER_WAKES,
        short: false,
    },
    Mutation {
        name: "wake_count: relaxed",
        file: "shm/signal.rs",
        old: "self.wake.load(Ordering::Acquire)",
        new: "self.wake.load(Ordering::Relaxed)",
        model: FOLLOWER_WAKES,
        short: false,
    },
    Mutation {
        name: "wake_up: count unchanged",
        file: "shm/signal.rs",
        old: "self.wake.fetch_add(1, Ordering::Release)",
        new: "self.wake.store(self.wake.load(Ordering::Relaxed), Ordering::Release)",
        model: FOLLOWER_WAKES,
        short: false,
    },
    Mutation {
        name: "wake_up: sleeping turned round",
        file: "shm/signal.rs",
        old: "self.sleeping.load(Ordering::Relaxed) != 0",
        new: "self.sleeping.load(Ordering::Relaxed) == 0",
        model: FOLLOWER_WAKES,
        short: false,
    },
    Mutation {
        name: "signal: tag not compared",
        file: "shm/signal.rs",
        old: "before & !u64::from(u32::MAX) != tag(cycle) || after == before",
        new: "after == before",
        model: STRAGGLERS,
        short: true,
    },
    Mutation {
        name: "signal: does not release",
        file: "shm/signal.rs",
        old: "compare_exchange_weak(before, after, Ordering::Release",
        new: "compare_exchange_weak(before, after, Ordering::Relaxed",
        model: FOLLOWER_WAKES,
        short: false,
    },
    Mutation {
        name: "signal: full word not acquired",
        file: "shm/signal.rs",
        old: "let mut before = place.load(Ordering::Acquire)",
        new: "let mut before = place.load(Ordering::Relaxed)",
        model: CARRIES_ON,
        short: false,
    },
    Mutation {
        name: "signal: full word not acquired on failure",
        file: "shm/signal.rs",
        old: "Ordering::Release, Ordering::Acquire",
        new: "Ordering::Release, Ordering::Relaxed",
        model: CARRIES_ON,
        short: false,
    },
    Mutation {
        name: "signal: stops at a full word",
        file: "shm/signal.rs",
        old: "Bit::FullBefore => filled = false",
        new: "Bit::FullBefore => return false",
        model: AWAKE_IN_PLACE_OF,
        short: true,
    },
    Mutation {
        name: "ready: relaxed",
        file: "shm/signal.rs",
        old: "root.load(Ordering::Acquire)",
        new: "root.load(Ordering::Relaxed)",
        model: WORDS_ADD_UP,
        short: false,
    },
    Mutation {
        name: "release: relaxed",
        file: "shm/engine.rs",
        old: "self.cycle.0.store(cycle, Ordering::Release)",
        new: "self.cycle.0.store(cycle, Ordering::Relaxed)",
        model: RELEASED,
        short: false,
    },
    Mutation {
        name: "cycle: relaxed",
        file: "shm/engine.rs",
        old: "self.cycle.0.load(Ordering::Acquire)",
        new: "self.cycle.0.load(Ordering::Relaxed)",
        model: RELEASED,
        short: false,
    },
    Mutation {
        name: "begin: released before published",
        file: "cycle.rs",
        old: "    engine.publish(info);\n    engine.release(info.cycle);\n",
        new: "    engine.release(info.cycle);\n    engine.publish(info);\n",
        model: SAME_WAIT,
        short: false,
    },
    Mutation {
        name: "begin: armed after the release",
        file: "cycle.rs",
        old: "    engine.release(info.cycle);\n",
        new: "    engine.release(info.cycle);\n    for seat in seats {\n        seat.signals().arm(info.cycle, seat.edges());\n    }\n",
        model: CHAIN_RUNS,
        short: false,
    },
    Mutation {
        name: "begin: wakes a group only if there is one",
        file: "cycle.rs",
        old: "    engine.wake_group(park);\n",
        new: "    if seats.iter().any(|seat| seat.edges() == Edges::NONE) {\n        engine.wake_group(park);\n    }\n",
        model: GAINS_PREDECESSOR,
        short: false,
    },
    Mutation {
        name: "begin: clients that enter are not woken",
        file: "cycle.rs",
        old: "    if first {\n",
        new: "    if first && seats.is_empty() {\n",
        model: LOSES_PREDECESSORS,
        short: true,
    },
    Mutation {
        name: "signal_for: trusts the skipped client to wake",
        file: "cycle.rs",
        old: "if seat.signals().ready(cycle, seat.edges()) {",
        new: "if seat.edges() == Edges::NONE {",
        model: AWAKE_IN_PLACE_OF,
        short: false,
    },
    Mutation {
        name: "has_finished: numbers compared as if never old",
        file: "cycle.rs",
        old: "seat.own().finished() == cycle",
        new: "seat.own().finished().wrapping_sub(cycle) < 1 << 31",
        model: LONG_UPTIME,
        short: false,
    },
    Mutation {
        name: "next: cycle read before the wake-ups",
        file: "turn.rs",
        old: "        let woken = self.woken;\n        let released = pages.engine.cycle();\n",
        new: "        let released = pages.engine.cycle();\n        let woken = pages.signals.wake_count();\n",
        model: FOLLOWER_WAKES,
        short: true,
    },
    Mutation {
        name: "next: wake-ups between two looks forgotten",
        file: "turn.rs",
        old: "let woken = self.woken;",
        new: "let woken = pages.signals.wake_count();",
        model: RUNS_ONCE,
        short: false,
    },
    Mutation {
        name: "next: runs a cycle twice",
        file: "turn.rs",
        old: " && info.cycle != self.last_cycle;",
        new: ";",
        model: RUNS_ONCE,
        short: false,
    },
    Mutation {
        name: "next: sleeps on its page without orders",
        file: "turn.rs",
        old: "if !known || (in_plan",
        new: "if (in_plan",
        model: LATE_FOR_ORDERS,
        short: false,
    },
    Mutation {
        name: "next: sleeps on its page without info",
        file: "turn.rs",
        old: "            pages.engine.sleep(released, deadline_ns, park);\n            return",
        new: "            pages.signals.sleep(woken, deadline_ns, park);\n            return",
        model: SAME_WAIT,
        short: false,
    },
    Mutation {
        name: "wake_driver: no fence",
        file: "shm/own.rs",
        old: "sees the finished cycle.\n        fence(Ordering::SeqCst);",
        new: "sees the finished cycle.",
        model: DRIVER_AWAITS,
        short: false,
    },
    Mutation {
        name: "await_finish: no fence",
        file: "shm/own.rs",
        old: "// SeqCst: see `wake_driver`.\n            fence(Ordering::SeqCst);",
        new: "",
        model: DRIVER_AWAITS,
        short: false,
    },
    Mutation {
        name: "finish: relaxed",
        file: "shm/own.rs",
        old: "self.finished.store(cycle, Ordering::Release)",
        new: "self.finished.store(cycle, Ordering::Relaxed)",
        model: DRIVER_AWAITS,
        short: false,
    },
    Mutation {
        name: "finished: relaxed",
        file: "shm/own.rs",
        old: "self.finished.load(Ordering::Acquire)",
        new: "self.finished.load(Ordering::Relaxed)",
        model: DRIVER_AWAITS,
        short: false,
    },
    Mutation {
        name: "slab finish: relaxed",
        file: "shm/slab.rs",
        old: "self.finished.store(cycle, Ordering::Release)",
        new: "self.finished.store(cycle, Ordering::Relaxed)",
        model: SLAB,
        short: false,
    },
    Mutation {
        name: "slab finished: relaxed",
        file: "shm/slab.rs",
        old: "self.finished.load(Ordering::Acquire)",
        new: "self.finished.load(Ordering::Relaxed)",
        model: SLAB,
        short: false,
    },
    Mutation {
        name: "snapshot: writer without fence",
        file: "shm/snapshot.rs",
        old: "        fence(Ordering::Release);\n",
        new: "",
        model: SNAPSHOT,
        short: false,
    },
    Mutation {
        name: "snapshot: reader without fence",
        file: "shm/snapshot.rs",
        old: "                fence(Ordering::Acquire);\n",
        new: "",
        model: SNAPSHOT,
        short: true,
    },
    Mutation {
        name: "snapshot: end of the write relaxed",
        file: "shm/snapshot.rs",
        old: "wrapping_add(1), Ordering::Release)",
        new: "wrapping_add(1), Ordering::Relaxed)",
        model: SNAPSHOT,
        short: false,
    },
    Mutation {
        name: "snapshot: begin of the read relaxed",
        file: "shm/snapshot.rs",
        old: "self.sequence.load(Ordering::Acquire)",
        new: "self.sequence.load(Ordering::Relaxed)",
        model: SNAPSHOT,
        short: false,
    },
    Mutation {
        name: "orders: old set not withdrawn",
        file: "shm/orders.rs",
        old: "        slot.valid_from.store(0, Ordering::Relaxed);\n",
        new: "",
        model: ORDERS_WHOLE,
        short: false,
    },
    Mutation {
        name: "orders: writer without fence",
        file: "shm/orders.rs",
        old: "        fence(Ordering::Release);\n",
        new: "",
        model: ORDERS_WHOLE,
        short: false,
    },
    Mutation {
        name: "orders: reader without fence",
        file: "shm/orders.rs",
        old: "        fence(Ordering::Acquire);\n",
        new: "",
        model: ORDERS_WHOLE,
        short: false,
    },
    Mutation {
        name: "orders: end of the write relaxed",
        file: "shm/orders.rs",
        old: "slot.valid_from.store(valid_from, Ordering::Release)",
        new: "slot.valid_from.store(valid_from, Ordering::Relaxed)",
        model: ORDERS_WHOLE,
        short: false,
    },
    Mutation {
        name: "orders: begin of the read relaxed",
        file: "shm/orders.rs",
        old: "slot.valid_from.load(Ordering::Acquire)",
        new: "slot.valid_from.load(Ordering::Relaxed)",
        model: ORDERS_WHOLE,
        short: false,
    },
    Mutation {
        name: "orders: copy not checked",
        file: "shm/orders.rs",
        old: "slot.valid_from.load(Ordering::Relaxed) == valid[index]",
        new: "valid[index] > 0",
        model: ORDERS_WHOLE,
        short: false,
    },
    Mutation {
        name: "orders: the set in force is replaced",
        file: "shm/orders.rs",
        old: "if first > second",
        new: "if first < second",
        model: ORDERS_IN_FORCE,
        short: false,
    },
    Mutation {
        name: "handover: does not release",
        file: "shm/handover.rs",
        old: "Ordering::AcqRel",
        new: "Ordering::Acquire",
        model: RETIRED,
        short: false,
    },
    Mutation {
        name: "handover: does not acquire",
        file: "shm/handover.rs",
        old: "Ordering::AcqRel",
        new: "Ordering::Release",
        model: ONE_OWNER,
        short: true,
    },
    Mutation {
        name: "requests: the news overwrite those before",
        file: "shm/transport_requests.rs",
        old: "self.news.fetch_or(1, Ordering::Release)",
        new: "self.news.store(1, Ordering::Release)",
        model: ASKED_IS_HEARD,
        short: true,
    },
    Mutation {
        name: "requests: the news do not release",
        file: "shm/transport_requests.rs",
        old: "self.news.fetch_or(1, Ordering::Release)",
        new: "self.news.fetch_or(1, Ordering::Relaxed)",
        model: ASKED_IS_HEARD,
        short: false,
    },
    Mutation {
        name: "requests: the driver does not acquire the news",
        file: "shm/transport_requests.rs",
        old: "self.news.swap(0, Ordering::Acquire)",
        new: "self.news.swap(0, Ordering::Relaxed)",
        model: ASKED_IS_HEARD,
        short: false,
    },
    Mutation {
        name: "requests: the end of a position is not released",
        file: "shm/transport_requests.rs",
        old: "place.state.store(ticket << 2 | READY, Ordering::Release)",
        new: "place.state.store(ticket << 2 | READY, Ordering::Relaxed)",
        model: POSITIONS_IN_ORDER,
        short: true,
    },
    Mutation {
        name: "requests: the copy of a position is not checked",
        file: "shm/transport_requests.rs",
        old: "whole.then(|| Position::from_words(&words))",
        new: "(whole || !whole).then(|| Position::from_words(&words))",
        model: POSITIONS_IN_ORDER,
        short: false,
    },
    Mutation {
        name: "requests: older positions stay",
        file: "shm/transport_requests.rs",
        old: "is_newer(state, *other)",
        new: "is_newer(state, *other) && false",
        model: POSITIONS_IN_ORDER,
        short: false,
    },
    Mutation {
        name: "requests: the oldest position is heard",
        file: "shm/transport_requests.rs",
        old: "if is_newer(other.1, newest.1)",
        new: "if !is_newer(other.1, newest.1)",
        model: POSITIONS_IN_ORDER,
        short: false,
    },
];
