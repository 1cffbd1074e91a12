//! The models, by what they promise (`crates/rt/tests/models`).

pub(super) const FOLLOWER_WAKES: &str =
    "a_follower_wakes_when_its_last_predecessor_has_finished_and_hears_them_all";
pub(super) const ROUSED: &str = "a_client_that_another_thread_wakes_in_the_driver_s_place_misses_no_cycle";
pub(super) const WORDS_ADD_UP: &str = "predecessors_counted_in_different_words_are_all_heard";
pub(super) const RELEASED: &str = "whoever_sees_a_cycle_released_sees_all_that_the_driver_did_before";
pub(super) const CHAIN_RUNS: &str = "a_chain_runs_from_the_drivers_release_on_without_the_driver";
pub(super) const RUNS_ONCE: &str = "a_signal_given_by_a_client_and_for_it_makes_its_follower_run_once";
pub(super) const AWAKE_IN_PLACE_OF: &str =
    "once_the_driver_has_signaled_for_a_client_its_follower_is_awake_wherever_the_client_stands";
pub(super) const CARRIES_ON: &str =
    "a_signal_given_for_a_client_carries_on_what_the_other_predecessors_wrote";
pub(super) const STRAGGLERS: &str = "a_signal_of_the_cycle_before_never_counts_in_the_next";
pub(super) const DRIVER_AWAITS: &str =
    "a_driver_that_awaits_clients_sleeps_until_they_have_finished_and_not_past_it";
pub(super) const LONG_UPTIME: &str = "a_client_that_has_not_run_is_awaited_however_long_the_server_has_run";
pub(super) const SLAB: &str = "whoever_sees_a_slab_finished_hears_its_samples";
pub(super) const GAINS_PREDECESSOR: &str = "a_client_without_predecessors_that_gets_one_misses_no_cycle";
pub(super) const ANOTHER_CPU: &str = "a_client_that_is_told_another_cpu_misses_no_cycle_wherever_it_sleeps";
pub(super) const LOSES_PREDECESSORS: &str = "a_client_that_loses_its_predecessors_misses_no_cycle";
pub(super) const SAME_WAIT: &str = "a_client_that_waits_for_the_same_in_both_plans_misses_no_cycle";
pub(super) const MOVES_PAGE: &str = "a_client_whose_signal_page_is_replaced_misses_no_cycle";
pub(super) const LATE_FOR_ORDERS: &str =
    "a_client_so_late_that_its_orders_were_replaced_obeys_the_newer_ones";
pub(super) const ORDERS_WHOLE: &str = "a_client_that_copies_its_orders_never_gets_a_mixture_of_two_sets";
pub(super) const ORDERS_IN_FORCE: &str =
    "orders_of_a_plan_withdrawn_before_any_cycle_leave_those_in_force_alone";
pub(super) const SNAPSHOT: &str = "a_snapshot_is_never_half_old_and_half_new";
pub(super) const RECORDING: &str = "a_record_is_never_half_overwritten_and_none_is_read_before_it_is_written";
pub(super) const ONE_OWNER: &str = "each_plan_is_run_or_comes_back_and_never_both";
pub(super) const ASKED_IS_HEARD: &str = "what_two_threads_ask_is_heard_whoever_tells_last";
pub(super) const POSITIONS_IN_ORDER: &str =
    "positions_are_heard_whole_and_in_their_order_and_the_last_one_always";
pub(super) const RETIRED: &str = "a_retired_plan_comes_back_as_the_driver_left_it";
