//! What a program may do while one of its callbacks runs.

use std::path::Path;

use harness::{Server, c_program};

/// Has the program take one case, which it judges itself.
fn take(case: &str) {
    let server = Server::timer(256);
    let program = server.directory().join("running");
    c_program(Path::new("effects/running.c"), &program);
    let ended = server.run(&program.to_string_lossy(), &[case]);
    assert_eq!(ended.code, Some(0), "{case}: {}", ended.stderr);
}

#[test]
fn a_callback_that_runs_while_its_client_is_activated_again_is_told_what_comes_after() {
    take("reactivate");
}

#[test]
fn a_callback_that_is_removed_while_it_runs_is_not_called_any_more() {
    take("unset");
}

#[test]
fn a_callback_may_deactivate_its_client_put_another_in_its_place_and_activate() {
    take("replace");
}

#[test]
fn a_process_callback_that_outlasts_a_deactivation_refuses_the_next_one_until_it_returns_and_is_called_then()
{
    take("stay");
}

#[test]
fn sync_and_timebase_callbacks_that_are_set_by_a_callback_of_the_activation_take_effect() {
    take("set-transport");
}

#[test]
fn a_callback_of_the_activation_cannot_deactivate_or_activate_and_harms_nothing_by_trying() {
    take("deactivate");
}

#[test]
fn a_callback_of_the_activation_may_close_the_client() {
    take("close");
}

#[test]
fn signals_reach_callbacks_as_the_thread_that_opened_the_client_but_never_a_cycle() {
    take("signals");
}
