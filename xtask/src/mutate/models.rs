//! The models, by what they promise (`crates/rt/tests/models`).

pub(super) const FOLLOWER_WAKES: &str = "a_follower_wakes_when_its_last_predecessor_has_finished";
pub(super) const WORDS_ADD_UP: &str = "predecessors_counted_in_different_words_are_all_awaited";
pub(super) const RELEASED: &str = "a_released_cycle_publishes_all_that_the_driver_did_before";
pub(super) const CHAIN_RUNS: &str = "a_chain_runs_from_the_drivers_release_on_without_the_driver";
pub(super) const RUNS_ONCE: &str = "a_signal_given_twice_makes_the_follower_run_once";
pub(super) const AWAKE_IN_PLACE_OF: &str = "a_signal_for_a_stopped_client_wakes_its_follower";
pub(super) const CARRIES_ON: &str = "a_signal_for_a_client_publishes_what_other_predecessors_wrote";
pub(super) const STRAGGLERS: &str = "a_signal_of_the_cycle_before_never_counts_in_the_next";
pub(super) const DRIVER_AWAITS: &str =
    "a_driver_that_awaits_clients_sleeps_exactly_until_they_finish";
pub(super) const LONG_UPTIME: &str =
    "a_client_that_has_not_run_is_awaited_however_long_the_server_has_run";
pub(super) const SLAB: &str = "a_reader_that_sees_a_slab_finished_sees_its_samples";
pub(super) const GAINS_PREDECESSOR: &str =
    "a_client_without_predecessors_that_gets_one_misses_no_cycle";
pub(super) const LOSES_PREDECESSORS: &str = "a_client_that_loses_its_predecessors_misses_no_cycle";
pub(super) const SAME_WAIT: &str = "a_client_that_waits_for_the_same_in_both_plans_misses_no_cycle";
pub(super) const MOVES_PAGE: &str = "a_client_whose_signal_page_is_replaced_misses_no_cycle";
pub(super) const TAKEN_OFF: &str = "a_follower_that_was_taken_off_its_page_runs_again";
pub(super) const LATE_FOR_ASSIGNMENT: &str =
    "a_very_late_client_obeys_the_assignment_that_replaced_its_own";
pub(super) const ASSIGNMENT_WHOLE: &str =
    "a_client_that_copies_its_assignment_never_gets_a_mixture_of_two_sets";
pub(super) const ASSIGNMENT_IN_FORCE: &str =
    "a_withdrawn_plans_assignment_leaves_the_one_in_force_alone";
pub(super) const SNAPSHOT: &str = "a_snapshot_is_never_torn";
pub(super) const RECORDING: &str = "a_reader_gets_only_completely_written_records";
pub(super) const ONE_OWNER: &str = "no_plan_is_both_run_and_returned";
pub(super) const BOTH_REQUESTS: &str = "requests_of_two_threads_both_reach_the_driver";
pub(super) const POSITIONS_IN_ORDER: &str =
    "the_driver_reads_whole_positions_in_order_up_to_the_last_one";
pub(super) const CALLED: &str = "what_was_left_before_a_call_is_found";
pub(super) const RETIRED: &str = "a_retired_plan_comes_back_as_the_driver_left_it";
pub(super) const NUMBERED: &str = "a_numbered_entry_is_read_whole_or_not_at_all";
pub(super) const PLAYBACK_RING: &str = "a_playback_ring_is_overwritten_only_after_it_was_read";
pub(super) const RECORD_RING: &str = "an_intact_copy_of_a_record_ring_has_no_newer_frames";
pub(super) const WISHES: &str = "wishes_are_read_once_in_order_and_acknowledged";
pub(super) const KICKED: &str = "a_kicked_program_obeys_the_newest_schedule";
pub(super) const KICKED_FOR_WISH: &str = "a_kicked_program_finds_its_wish_acknowledged";
pub(super) const MESSAGE_FOUND: &str = "a_message_is_found_whenever_it_is_sent";
pub(super) const MESSAGES_READ: &str = "messages_are_read_as_they_were_sent";
pub(super) const WORDS_READ: &str = "words_for_a_program_are_read_as_they_were_put";
