//! Clients that end in the middle of a cycle.

use harness::{eventually, modes};

use crate::scenario::{Scenario, judged};

fn a_death(fault: &str) {
    for mode in modes() {
        judged(mode, || a_death_in(mode, fault));
    }
}

fn a_death_in(mode: &[&str], fault: &str) -> Result<(), String> {
    let mut scenario = Scenario::new(mode, fault);
    scenario.trigger_fault();
    eventually("it runs a cycle", || scenario.victim.stdout().contains("running\n").then_some(()));
    scenario.expect_new_clients_to_work();
    eventually("the victim is dead", || (!scenario.victim.is_running()).then_some(()));
    assert!(!scenario.victim.stdout().contains("ran\n"), "{fault} {mode:?}: it died running");
    eventually("the server knows", || (!scenario.has_victim()).then_some(()));
    scenario.expect_new_clients_to_work();
    scenario.await_cycles(100);
    let what = format!("{fault} {mode:?}");
    let fed = scenario.expect_bystander_undisturbed(&what)?.fed;
    if fed.counts.silent == 0 {
        return Err(format!("{what}: the dead client is not heard as silence: {fed:?}"));
    }
    // Its follower continues with silence: it runs its cycles, except the one in which the victim
    // died.
    if fed.lost_as("wrong") > 0 || fed.lost_as("missed") > 1 {
        return Err(format!("{what}: its follower lost more than the cycle of the death: {fed:?}"));
    }
    Ok(())
}

#[test]
fn a_client_killed_in_its_process_callback_costs_its_follower_one_cycle() {
    a_death("kill");
}

#[test]
fn a_segmentation_fault_in_a_process_callback_costs_no_more_than_a_kill() {
    a_death("crash");
}

#[test]
fn an_exit_in_a_process_callback_costs_no_more_than_a_kill() {
    a_death("exit");
}

#[test]
fn a_killed_client_of_a_gigabyte_costs_no_more_than_a_small_one() {
    a_death("big-kill");
}

#[test]
fn a_client_that_dumps_a_gigabyte_of_core_costs_no_more_than_a_kill() {
    a_death("big-crash");
}
