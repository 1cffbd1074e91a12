//! Clients that end in the middle of a cycle.

use harness::eventually;

use crate::stage::{MODES, Stage, expect_machine_losses, expect_right, expect_undisturbed, withstand};

fn a_death(fault: &str) {
    for mode in MODES {
        withstand(mode, || a_death_in(mode, fault));
    }
}

fn a_death_in(mode: &[&str], fault: &str) -> Result<(), String> {
    let mut stage = Stage::new(mode, fault);
    stage.strike();
    eventually("it runs a cycle", || stage.victim.stdout().contains("running\n").then_some(()));
    stage.expect_new_clients_to_work();
    eventually("the victim is dead", || (!stage.victim.is_running()).then_some(()));
    assert!(!stage.victim.stdout().contains("ran\n"), "{fault} {mode:?}: it died running");
    eventually("the server knows", || (!stage.has_victim()).then_some(()));
    stage.expect_new_clients_to_work();
    stage.await_cycles(100);
    let (beside, fed) = stage.counts();
    let what = format!("{fault} {mode:?}");
    expect_right(&what, fed)?;
    expect_undisturbed(&what, beside)?;
    if fed.silent == 0 {
        return Err(format!("{what}: the dead client is not heard as silence: {fed:?}"));
    }
    // What it fed goes on with silence: it runs its cycles, but for the one in which the victim died.
    expect_machine_losses(&what, fed.missed.saturating_sub(1), fed)
}

#[test]
fn a_client_killed_in_its_process_callback_costs_its_follower_one_cycle_and_nobody_else_any() {
    a_death("kill");
}

#[test]
fn a_segmentation_fault_in_a_process_callback_costs_no_more_than_a_kill() {
    a_death("crash");
}

#[test]
fn a_program_that_exits_in_its_process_callback_costs_no_more_than_a_kill() {
    a_death("exit");
}

#[test]
fn a_client_killed_with_a_gigabyte_of_memory_costs_no_more_than_a_small_one() {
    a_death("big-kill");
}

#[test]
fn a_client_that_writes_a_gigabyte_of_core_when_it_dies_costs_no_more_than_one_that_does_not() {
    a_death("big-crash");
}
