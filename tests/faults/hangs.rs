//! Clients that do not come back from their process callback, or come back late.

use harness::{Counts, eventually};
use rustix::process::Signal;

use crate::stage::{MODES, Stage, expect_machine_losses, expect_right, expect_undisturbed, withstand};

fn a_hang(mode: &[&str], fault: &str) -> Stage {
    let mut stage = Stage::new(mode, fault);
    stage.strike();
    eventually("the server leaves it out", || stage.is_bypassed().then_some(()));
    stage.expect_new_clients_to_work();
    stage.await_cycles(100);
    stage
}

fn expect_survivors(stage: Stage, what: &str) -> Result<(), String> {
    let (beside, fed) = stage.counts();
    expect_right(what, fed)?;
    expect_undisturbed(what, beside)?;
    expect_machine_losses(what, fed.missed.saturating_sub(3), fed)
}

#[test]
fn a_client_that_spins_for_ever_is_left_out_and_the_others_go_on() {
    for mode in MODES {
        withstand(mode, || expect_survivors(a_hang(mode, "hang"), "hang"));
    }
}

#[test]
fn a_client_that_sleeps_for_ever_is_left_out_and_the_others_go_on() {
    withstand(MODES[1], || expect_survivors(a_hang(MODES[1], "sleep"), "sleep"));
}

#[test]
fn a_process_thread_that_ends_by_itself_is_left_out_and_the_others_go_on() {
    withstand(MODES[1], || expect_survivors(a_hang(MODES[1], "end-thread"), "end-thread"));
}

/// It sounds again, and nobody else noticed.
fn expect_return(stage: Stage, what: &str, cycles: u64) -> Result<(), String> {
    let (beside, fed) = stage.counts();
    expect_right(what, fed)?;
    if fed.good <= cycles {
        return Err(format!("{what}: it does not sound again: {fed:?}"));
    }
    expect_undisturbed(what, beside)
}

#[test]
fn a_stopped_client_comes_back_with_its_connections_when_it_is_continued() {
    withstand(MODES[1], || {
        let mut stage = a_hang(MODES[1], "stop");
        stage.victim.signal(Signal::CONT);
        eventually("it is let in again", || (!stage.is_bypassed()).then_some(()));
        stage.await_cycles(200);
        expect_return(stage, "stop", 100)
    });
}

#[test]
fn a_client_that_was_late_once_for_twenty_cycles_is_let_in_again_by_itself() {
    withstand(MODES[1], || {
        let mut stage = Stage::new(MODES[1], "slow-once");
        stage.strike();
        stage.await_cycles(400);
        eventually("it is let in again", || (!stage.is_bypassed()).then_some(()));
        stage.await_cycles(200);
        expect_return(stage, "slow-once", 200)
    });
}

#[test]
fn a_client_whose_every_cycle_takes_three_periods_disturbs_nobody_else() {
    for mode in [MODES[1], MODES[3]] {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "slow");
            stage.strike();
            stage.await_cycles(600);
            stage.expect_new_clients_to_work();
            let (beside, fed) = stage.counts();
            expect_right("slow", fed)?;
            expect_undisturbed("slow", beside)
        });
    }
}

#[test]
fn a_buffer_size_callback_that_blocks_keeps_only_its_own_client_out_until_it_returns() {
    for mode in MODES {
        let mut stage = Stage::new(mode, "block-buffer-size");
        stage.server.run("jack_bufsize", &["512"]).expect_success();
        stage.await_cycles(100);
        assert!(stage.server.run("jack_bufsize", &[]).expect_success().stdout.contains("512"));
        stage.expect_new_clients_to_work();
        await_sound(&mut stage, "source:out", "the others go on");
        stage.strike();
        await_sound(&mut stage, "victim:out", "the victim sounds again");
    }
}

/// Listens to a port until most of 100 cycles have the right samples.
fn await_sound(stage: &mut Stage, port: &str, what: &str) {
    eventually(what, || {
        let listener = stage.server.probe(&["check", "listener", "--from", port]);
        stage.await_cycles(100);
        let heard = Counts::of(listener);
        (heard.good > 50 && heard.wrong == 0).then_some(())
    });
}

fn hung_clients_on_every_cpu(mode: &[&str]) -> Result<(), String> {
    let mut stage = Stage::new(mode, "hang");
    let cpus = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let start = |number: usize| {
        let name = format!("hung{number}");
        stage.server.probe(&["thru", &name, "--from", "source:out", "--fault", "hang"])
    };
    let more: Vec<_> = (0..cpus).map(start).collect();
    stage.await_cycles(100);
    stage.strike();
    more.iter().for_each(|hung| hung.signal(Signal::USR1));
    eventually("all of them are left out", || {
        let status = stage.server.consort(&["status"]).expect_success().stdout;
        let left_out = status.lines().filter(|line| line.contains("bypassed")).count();
        (left_out == cpus + 1).then_some(())
    });
    stage.expect_new_clients_to_work();
    stage.await_cycles(100);
    let (beside, fed) = stage.counts();
    expect_right("hung on every CPU", beside)?;
    expect_right("hung on every CPU", fed)?;
    // Until their priority is taken, there is no CPU left for the others.
    let lost = (beside.silent + beside.missed).saturating_sub(3);
    expect_machine_losses("hung on every CPU", lost, beside)
}

#[test]
fn hung_clients_on_every_cpu_are_left_out_and_the_others_go_on() {
    for mode in [MODES[1], MODES[3]] {
        withstand(mode, || hung_clients_on_every_cpu(mode));
    }
}

#[test]
fn a_callback_that_never_returns_harms_only_what_its_own_client_is_told() {
    for mode in MODES {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "block-notice");
            stage.strike();
            for _ in 0..10 {
                stage.expect_new_clients_to_work();
            }
            stage.await_cycles(100);
            assert!(!stage.is_bypassed(), "its process callback is called all the same");
            let (beside, fed) = stage.counts();
            expect_undisturbed("beside a blocked callback", beside)?;
            expect_undisturbed("fed by the client with it", fed)
        });
    }
}

#[test]
fn a_clock_that_jumps_costs_cycles_and_nothing_else() {
    for mode in MODES {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "none");
            // For the driver, two seconds pass at once.
            stage.server.program().signal(Signal::STOP);
            std::thread::sleep(std::time::Duration::from_secs(2));
            stage.server.program().signal(Signal::CONT);
            stage.await_cycles(200);
            stage.expect_new_clients_to_work();
            assert!(!stage.is_bypassed(), "{mode:?}");
            let (beside, fed) = stage.counts();
            expect_undisturbed("after a jump", beside)?;
            expect_undisturbed("after a jump", fed)
        });
    }
}
