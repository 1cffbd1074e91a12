//! Programs that are late, or do not answer.

use super::super::super::edit::Edit::{Delete, Replace};
use super::super::{Defence, process, unit};

const ENGINE: &str = "consort-engine";
const PULSE: &str = "consort-pulse";
const SYS: &str = "consort-sys";

pub(super) const WAITS: &[Defence] = &[
    unit(
        "take_up.predecessors_awaited_without_end",
        Replace("&& !is_over(PREDECESSORS_PATIENCE_NS)", ""),
        ENGINE,
        "control::clients::tests::a_predecessor_that_maps_nothing_falls_silent",
    ),
    unit(
        "peer.id_in_servers_namespace",
        Replace(".last()", ".next()"),
        SYS,
        "thread::peer::tests::\
         a_thread_of_a_pid_namespace_is_found_by_the_id_that_it_has_there",
    ),
    unit(
        "supervision.never_suspends",
        Replace("has_timed_out && self.suspension.is_none()", "false"),
        ENGINE,
        "supervision::tests::a_client_that_hangs_for_the_timeout_is_suspended_until_it_polls_again",
    ),
    unit(
        "late_counter.overdue_cycles_forgiven",
        Delete,
        ENGINE,
        "supervision::tests::a_client_that_delays_every_other_cycle_is_suspended",
    ),
    unit(
        "write_margin.none",
        Replace("self.longest_ns.min(period_ns / LARGEST_DIVISOR)", "0"),
        ENGINE,
        "cycle_thread::write_margin::tests::\
         the_wait_ends_as_long_before_the_next_cycle_as_the_longest_write_took",
    ),
    process(
        "await_playback.past_the_cycle",
        Replace("until_ns, &Futex", "until_ns + 4 * period_ns, &Futex"),
        "faults",
        "hostile::a_program_that_lies_about_its_cycles_costs_no_other_a_cycle",
    ),
    unit(
        "pause.as_long_as_callbacks_run",
        Replace("|| facts.now_ns >= pause_until_ns", ""),
        ENGINE,
        "control::transition::steps::tests::\
         a_callback_that_does_not_return_lengthens_a_pause_by_a_stall_at_most",
    ),
    unit(
        "notifications.all_wait_for_a_connection",
        Replace("awaited.filter(|_| is_end(*client))", "awaited"),
        ENGINE,
        "control::notifications::tests::\
         clients_at_neither_end_of_a_connection_do_not_wait_for_it",
    ),
    unit(
        "notifications.wait_without_end",
        Replace("awaited.deadline_ns > now_ns && ", ""),
        ENGINE,
        "control::notifications::tests::\
         a_connection_that_never_carries_sound_is_announced_at_its_deadline",
    ),
    unit(
        "latencies.callback_awaited_without_end",
        Replace("|due_ns| now_ns < due_ns", "|_| true"),
        ENGINE,
        "control::latencies::tests::a_callback_that_does_not_return_delays_a_pass_only_for_a_while",
    ),
    process(
        "end_if_late.never",
        Replace("deadline_ns > now_ns", "deadline_ns > 0"),
        "internal",
        "faults::a_plug_in_that_fails_in_jack_initialize_leaves_nothing",
    ),
    process(
        "await_end.without_limit",
        Replace("WHEN_DONE_LIMIT_NS", "u64::MAX"),
        "transport",
        "freewheel::freewheel_waits_once_for_a_client_that_is_stopped",
    ),
    unit(
        "link_processes.ended_after_any_time",
        Delete,
        PULSE,
        "service::link_processes::tests::\
         a_process_that_is_not_needed_any_more_and_stays_is_killed",
    ),
    unit(
        "end_elsewhere.at_once",
        Replace("move || drop(helper)", "{ drop(helper); || () }"),
        PULSE,
        "service::link_processes::tests::\
         a_process_that_closes_its_output_and_stays_is_not_waited_for",
    ),
    unit(
        "end_all.one_after_the_other",
        Replace(
            "Helper::ask_to_end",
            "|helper| { let by_ns = helper.ask_to_end(); let _ = helper.wait_until(by_ns); by_ns }",
        ),
        SYS,
        "helper::tests::helpers_that_end_together_are_waited_for_together",
    ),
    unit(
        "lines.of_any_length",
        Replace("self.buffer.len() > MAX_LINE_BYTES", "false"),
        SYS,
        "helper::tests::a_line_that_does_not_end_is_not_kept_and_ends_the_output",
    ),
    process(
        "link_processes.begun_after_any_time",
        Replace("*by_ns <= now_ns", "false"),
        "pulse",
        "processing::a_plug_in_that_hangs_keeps_nobody_waiting_and_leaves_no_process",
    ),
    process(
        "close_peer.streams_play_on",
        Delete,
        "streams",
        "heard::a_player_that_is_killed_fades_out",
    ),
    process(
        "front_end.not_started_again",
        Replace("self.pause(pause_ns).is_err()", "true"),
        "pulse",
        "beside_server::a_front_end_that_is_killed_is_replaced_and_no_program_is_refused",
    ),
    process(
        "runner.sleeps_where_a_predecessor_put_it",
        Replace("(!memory.engine.flags().trusts_programs).then_some(POLL_NS)", "None"),
        "faults",
        "hostile::a_follower_runs_again_after_its_predecessor_has_moved_it",
    ),
    process(
        "try_server.without_end",
        Replace("until_ns <= now_ns()", "false"),
        "restart",
        "endings::the_shutdown_callback_comes_at_the_end_of_the_grace_period",
    ),
    process(
        "give_up.followers_wait",
        Delete,
        "faults",
        "deaths::a_killed_client_of_a_gigabyte_costs_no_more_than_a_small_one",
    ),
    unit(
        "timer.missed_cycles_are_run",
        Replace("late_ns <= period_ns", "true"),
        "consort-device",
        "timer::tests::cycles_that_were_missed_are_not_run_in_a_burst",
    ),
];
