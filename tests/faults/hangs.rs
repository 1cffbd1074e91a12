//! Clients that do not come back from their process callback, or come back late.

use harness::{Counts, eventually};
use rustix::process::Signal;

use crate::stage::{MODES, Stage, machine_losses};

fn a_hang(fault: &str) -> Stage {
    a_hang_in(MODES[1], fault)
}

fn a_hang_in(mode: &[&str], fault: &str) -> Stage {
    let mut stage = Stage::new(mode, fault);
    stage.strike();
    eventually("the server leaves it out", || stage.is_bypassed().then_some(()));
    stage.expect_new_clients_to_work();
    stage.await_cycles(100);
    stage
}

fn expect_survivors(stage: Stage, what: &str) {
    let (beside, fed) = stage.counts();
    assert_eq!((beside.wrong, fed.wrong), (0, 0), "{what}: {beside:?} {fed:?}");
    assert!(beside.silent + beside.missed <= machine_losses(beside), "{what}: {beside:?}");
    assert!(fed.missed <= 3 + machine_losses(fed), "{what}: {fed:?}");
}

#[test]
fn a_client_that_spins_for_ever_is_left_out_and_the_others_go_on() {
    for mode in MODES {
        expect_survivors(a_hang_in(mode, "hang"), "hang");
    }
}

#[test]
fn a_client_that_sleeps_for_ever_is_left_out_and_the_others_go_on() {
    expect_survivors(a_hang("sleep"), "sleep");
}

#[test]
fn a_process_thread_that_ends_by_itself_is_left_out_and_the_others_go_on() {
    expect_survivors(a_hang("end-thread"), "end-thread");
}

#[test]
fn a_stopped_client_comes_back_with_its_connections_when_it_is_continued() {
    let mut stage = a_hang("stop");
    stage.victim.signal(Signal::CONT);
    eventually("it is let in again", || (!stage.is_bypassed()).then_some(()));
    stage.await_cycles(200);
    let (beside, fed) = stage.counts();
    assert_eq!((beside.wrong, fed.wrong), (0, 0), "{beside:?} {fed:?}");
    assert!(fed.good > 100, "it sounds again: {fed:?}");
    assert!(beside.silent + beside.missed <= machine_losses(beside), "{beside:?}");
}

#[test]
fn a_client_that_was_late_once_for_twenty_cycles_is_let_in_again_by_itself() {
    let mut stage = Stage::new(MODES[1], "slow-once");
    stage.strike();
    stage.await_cycles(400);
    eventually("it is let in again", || (!stage.is_bypassed()).then_some(()));
    stage.await_cycles(200);
    let (beside, fed) = stage.counts();
    assert!(fed.good > 200, "it sounds again: {fed:?}");
    assert!(beside.silent + beside.missed <= machine_losses(beside), "{beside:?}");
}

#[test]
fn a_client_whose_every_cycle_takes_three_periods_disturbs_nobody_else() {
    for mode in [MODES[1], MODES[3]] {
        let mut stage = Stage::new(mode, "slow");
        stage.strike();
        stage.await_cycles(600);
        stage.expect_new_clients_to_work();
        expect_survivors_of_slowness(stage);
    }
}

fn expect_survivors_of_slowness(stage: Stage) {
    let (beside, fed) = stage.counts();
    assert_eq!((beside.wrong, fed.wrong), (0, 0), "{beside:?} {fed:?}");
    assert!(beside.silent + beside.missed <= machine_losses(beside), "{beside:?}");
}

#[test]
fn a_buffer_size_callback_that_blocks_keeps_only_its_own_client_out_until_it_returns() {
    let mut stage = Stage::new(MODES[1], "block-buffer-size");
    stage.server.run("jack_bufsize", &["512"]).expect_success();
    stage.await_cycles(100);
    assert!(stage.server.run("jack_bufsize", &[]).expect_success().stdout.contains("512"));
    stage.expect_new_clients_to_work();
    let heard = stage.server.probe(&["check", "heard", "--from", "source:out"]);
    stage.await_cycles(100);
    let heard = Counts::of(heard);
    assert!(heard.good > 50 && heard.wrong == 0, "the others go on: {heard:?}");
    stage.strike();
    eventually("the victim sounds again", || {
        let listener = stage.server.probe(&["check", "listener", "--from", "victim:out"]);
        stage.await_cycles(100);
        let heard = Counts::of(listener);
        assert_eq!(heard.wrong, 0, "{heard:?}");
        (heard.good > 50).then_some(())
    });
}
