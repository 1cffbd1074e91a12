//! Clients that do not return from their process callback, or return late.

use harness::{Counts, Heard, MODES, Program, Server, eventually, modes, not_run};
use rustix::process::{Pid, Signal, kill_process};
use sys::clock::now_ns;
use sys::thread::{Scheduling, scheduling};

use crate::scenario::{Scenario, Survivors, alone, judged};

fn a_hang(mode: &[&str], fault: &str) -> Scenario {
    let scenario = Scenario::new(mode, fault);
    scenario.trigger_fault();
    eventually("the server leaves it out", || scenario.is_bypassed().then_some(()));
    scenario.expect_new_clients_to_work();
    scenario.await_cycles(100);
    scenario
}

/// Cycles that a follower may miss until the victim is left out.
const UNTIL_LEFT_OUT: u64 = 3;

fn expect_survivors(scenario: Scenario, what: &str) -> Result<(), String> {
    let fed = scenario.expect_bystander_undisturbed(what)?.fed;
    if fed.lost_as("wrong") > 0 || fed.lost_as("missed") > UNTIL_LEFT_OUT {
        return Err(format!("{what}: its follower does not go on with silence: {fed:?}"));
    }
    Ok(())
}

#[test]
fn a_client_that_spins_for_ever_is_suspended_alone() {
    for mode in modes() {
        judged(mode, || expect_survivors(a_hang(mode, "hang"), "hang"));
    }
}

#[test]
fn a_client_that_sleeps_for_ever_is_suspended_alone() {
    judged(MODES[1], || expect_survivors(a_hang(MODES[1], "sleep"), "sleep"));
}

#[test]
fn a_client_whose_process_thread_ends_is_suspended_alone() {
    judged(MODES[1], || expect_survivors(a_hang(MODES[1], "end-thread"), "end-thread"));
}

/// Checks that the client sounds again, and that no other client was disturbed.
fn expect_return(scenario: Scenario, what: &str, cycles: u64) -> Result<(), String> {
    let fed = scenario.expect_bystander_undisturbed(what)?.fed;
    if fed.lost_as("wrong") > 0 || fed.counts.good <= cycles {
        return Err(format!("{what}: it does not sound again: {fed:?}"));
    }
    Ok(())
}

#[test]
fn a_stopped_client_comes_back_with_its_connections_when_it_is_continued() {
    judged(MODES[1], || {
        let scenario = a_hang(MODES[1], "stop");
        scenario.victim.signal(Signal::CONT);
        eventually("it is let in again", || (!scenario.is_bypassed()).then_some(()));
        scenario.await_cycles(200);
        expect_return(scenario, "stop", 100)
    });
}

#[test]
fn a_client_that_was_late_once_is_reinstated() {
    judged(MODES[1], || {
        let scenario = Scenario::new(MODES[1], "slow-once");
        scenario.trigger_fault();
        scenario.await_cycles(400);
        eventually("it is let in again", || (!scenario.is_bypassed()).then_some(()));
        scenario.await_cycles(200);
        expect_return(scenario, "slow-once", 200)
    });
}

#[test]
fn a_client_that_always_takes_three_periods_disturbs_no_other() {
    for mode in [MODES[1], MODES[3]] {
        judged(mode, || {
            let scenario = Scenario::new(mode, "slow");
            scenario.trigger_fault();
            scenario.await_cycles(600);
            scenario.expect_new_clients_to_work();
            let fed = scenario.expect_bystander_undisturbed("slow")?.fed;
            if fed.lost_as("wrong") > 0 { Err(format!("{fed:?}")) } else { Ok(()) }
        });
    }
}

#[test]
fn a_client_that_makes_the_driver_wait_every_other_cycle_is_suspended() {
    let mode = MODES.into_iter().find(|mode| mode.contains(&"--sync")).expect("a mode in sync");
    judged(mode, || {
        let scenario = Scenario::new(mode, "every-other");
        scenario.trigger_fault();
        eventually("it is suspended", || scenario.is_bypassed().then_some(()));
        scenario.await_cycles(100);
        let fed = scenario.expect_bystander_undisturbed("every other cycle")?.fed;
        if fed.lost_as("wrong") > 0 { Err(format!("{fed:?}")) } else { Ok(()) }
    });
}

#[test]
fn a_buffer_size_callback_that_blocks_keeps_only_its_client_out() {
    for mode in modes() {
        let mut scenario = Scenario::new(mode, "block-buffer-size");
        scenario.server.run("jack_bufsize", &["512"]).expect_success();
        scenario.await_cycles(100);
        assert!(scenario.server.run("jack_bufsize", &[]).expect_success().stdout.contains("512"));
        scenario.expect_new_clients_to_work();
        await_sound(&mut scenario, "source:out", "the others continue");
        scenario.trigger_fault();
        await_sound(&mut scenario, "victim:out", "the victim sounds again");
    }
}

#[test]
fn a_freewheel_callback_that_blocks_keeps_only_its_client_out() {
    let mut scenario = Scenario::new(MODES[1], "block-freewheel");
    scenario.server.run("jack_freewheel", &["y"]).expect_success();
    await_sound(&mut scenario, "source:out", "the others freewheel");
    let listener = scenario.server.probe(&["check", "listener", "--from", "victim:out"]);
    scenario.await_cycles(1000);
    assert_eq!(Counts::of(listener).good, 0, "no cycle runs in it during the callback");
    scenario.trigger_fault();
    await_sound(&mut scenario, "victim:out", "the victim sounds again");
    scenario.server.run("jack_freewheel", &["n"]).expect_success();
}

/// Listens to a port until most of 100 cycles have the right samples.
fn await_sound(scenario: &mut Scenario, port: &str, what: &str) {
    eventually(what, || {
        let listener = scenario.server.probe(&["check", "listener", "--from", port]);
        scenario.await_cycles(100);
        let heard = Counts::of(listener);
        (heard.good > 50 && heard.wrong == 0).then_some(())
    });
}

fn hung_clients_on_every_cpu(mode: &[&str]) -> Result<(), String> {
    let scenario = Scenario::new(mode, "hang");
    let cpus = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let start = |number: usize| {
        let name = format!("hung{number}");
        scenario.server.probe(&["thru", &name, "--from", "source:out", "--fault", "hang"])
    };
    let more: Vec<_> = (0..cpus).map(start).collect();
    scenario.await_cycles(100);
    scenario.trigger_fault();
    more.iter().for_each(|hung| hung.signal(Signal::USR1));
    eventually("all of them are left out", || {
        let clients = scenario.server.status().clients;
        let left_out = clients.iter().filter(|client| client.bypassed).count();
        (left_out == cpus + 1).then_some(())
    });
    scenario.expect_new_clients_to_work();
    scenario.await_cycles(100);
    let survivors = scenario.survivors();
    // Until their priority is taken, there is no CPU left for the others.
    survivors.bystander.expect("hung on every CPU", UNTIL_LEFT_OUT)?;
    match survivors.fed.lost_as("wrong") {
        0 => Ok(()),
        _ => Err(format!("hung on every CPU: {:?}", survivors.fed)),
    }
}

#[test]
fn hung_clients_on_every_cpu_do_not_stop_the_others() {
    for mode in [MODES[1], MODES[3]] {
        judged(mode, || hung_clients_on_every_cpu(mode));
    }
}

#[test]
fn a_callback_that_never_returns_delays_only_its_own_client() {
    for mode in modes() {
        judged(mode, || {
            let scenario = Scenario::new(mode, "block-notice");
            scenario.trigger_fault();
            for _ in 0..10 {
                scenario.expect_new_clients_to_work();
            }
            scenario.await_cycles(100);
            assert!(!scenario.is_bypassed(), "its process callback is called all the same");
            let most_lost = scenario.most_lost;
            let fed = scenario.expect_bystander_undisturbed("next to a blocked callback")?.fed;
            fed.expect("fed by the client with it", most_lost)
        });
    }
}

#[test]
fn a_clock_that_jumps_costs_only_cycles() {
    for mode in modes() {
        judged(mode, || {
            let mut scenario = Scenario::new(mode, "none");
            // For the driver, two seconds pass at once.
            scenario.server.program().signal(Signal::STOP);
            std::thread::sleep(std::time::Duration::from_secs(2));
            scenario.server.program().signal(Signal::CONT);
            // What is lost at once is the jump's: its clients have slept for two seconds.
            let settled_ns = now_ns() + 100_000_000;
            scenario.await_cycles(200);
            scenario.expect_new_clients_to_work();
            assert!(!scenario.is_bypassed(), "{mode:?}");
            let most_lost = scenario.most_lost;
            let Survivors { bystander, fed } = scenario.survivors();
            assert!(bystander.lost_as("skipped") > 0, "{bystander:?}");
            let later = |heard: Heard| heard.without("skipped").after(settled_ns);
            later(bystander).expect("after a jump", most_lost)?;
            later(fed).expect("after a jump", most_lost)
        });
    }
}

/// Whether a process has a real-time thread.
fn is_real_time(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let threads = threads.flatten().filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    threads.into_iter().any(|thread| !matches!(scheduling(thread), Ok(Scheduling::Other) | Err(_)))
}

#[test]
fn a_hung_client_in_a_pid_namespace_loses_its_priority() {
    const SANDBOX: [&str; 3] = ["--pid", "--fork", "--kill-child"];
    let mut trial = std::process::Command::new("unshare");
    if !trial.args(SANDBOX).arg("true").output().is_ok_and(|output| output.status.success()) {
        return not_run("no pid namespaces here");
    }
    let _alone = alone();
    let server = Server::start(MODES[1]);
    let probe = server.probe_command(&[]).get_program().to_owned();
    let mut command = server.command("unshare");
    command.args(SANDBOX).arg(probe).args(["thru", "boxed", "--fault", "hang"]);
    let mut boxed = Program::start(command);
    eventually("it is ready", || {
        assert!(boxed.is_running(), "{}", boxed.stderr());
        boxed.stdout().contains("ready\n").then_some(())
    });
    let process = server.client("boxed").expect("it is a client").process;
    server.await_cycles(10);
    if !is_real_time(process) {
        return not_run("no real-time priority here");
    }
    let pid = Pid::from_raw(process.cast_signed()).expect("its id here");
    kill_process(pid, Signal::USR1).expect("ours");
    eventually("it is suspended", || {
        server.client("boxed").is_some_and(|boxed| boxed.bypassed).then_some(())
    });
    eventually("it keeps no CPU from others", || (!is_real_time(process)).then_some(()));
}
