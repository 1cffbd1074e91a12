//! What a program may do while one of its callbacks runs.

use harness::{Server, c_program};

/// Runs one case of the program, which checks itself.
fn take(case: &str) {
    let server = Server::timer(256);
    let program = c_program("effects/running.c");
    let ended = server.run(&program, &[case]);
    assert_eq!(ended.code, Some(0), "{case}: {}", ended.stderr);
}

#[test]
fn callbacks_go_on_after_an_activation_within_a_callback() {
    take("reactivate");
}

#[test]
fn a_callback_that_is_removed_while_it_runs_is_not_called_any_more() {
    take("unset");
}

#[test]
fn a_callback_may_replace_its_client_by_another() {
    take("replace");
}

#[test]
fn a_process_callback_that_outlasts_a_deactivation_delays_the_next() {
    take("stay");
}

#[test]
fn a_callback_of_the_activation_may_set_transport_callbacks() {
    take("set-transport");
}

#[test]
fn a_callback_of_the_activation_cannot_activate_or_deactivate() {
    take("deactivate");
}

#[test]
fn a_callback_of_the_activation_may_close_the_client() {
    take("close");
}

#[test]
fn signals_never_reach_the_thread_of_a_cycle() {
    take("signals");
}
