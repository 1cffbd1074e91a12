//! A client that turns system calls against the memory and the descriptors that it was given
//! (`victims/hostile.c`). It has no rights over other processes.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Judge, MODES, Program, Server, Sound, c_program, eventually, modes, not_run, tone};
use rustix::process::Signal;

use crate::scenario::{alone, judged, quantum};

/// Starts the attacker; it has all that it can get when this returns.
fn hostile(server: &Server, arguments: &[&str]) -> Program {
    try_hostile(server, arguments).expect("it has what it needs")
}

/// The same; `None`: this machine has not what it needs.
fn try_hostile(server: &Server, arguments: &[&str]) -> Option<Program> {
    let mut command = server.command(&c_program("victims/hostile.c"));
    command.arg("hostile").args(arguments);
    let mut program = Program::start(command);
    eventually("the attacker is ready", || {
        let has_none = program.stdout().contains("none\n");
        assert!(program.is_running() || has_none, "{}", program.stderr());
        (program.stdout().contains("ready\n") || has_none).then_some(())
    });
    (!program.stdout().contains("none\n")).then_some(program)
}

fn attack(program: &mut Program) {
    program.signal(Signal::USR1);
    eventually("the attack is over", || program.stdout().contains("done\n").then_some(()));
}

/// `source → bystander`, and an attacker that is connected with neither.
fn against_strangers(mode: &[&str], call: &str) -> Result<(), String> {
    let _alone = alone();
    let server = Server::start(mode);
    let _source = server.probe(&["source", "source"]);
    let judge = Judge::of_cycles(quantum(mode)).expect("a judge was there before");
    let bystander = server.probe(&["monitor", "bystander", "--from", "source:out"]);
    let mut attacker = hostile(&server, &[call]);
    server.await_cycles(100);
    attack(&mut attacker);
    assert!(!attacker.stdout().contains("written"), "it got write access: {}", attacker.stdout());
    assert!(!attacker.stdout().contains("merged"), "pages were merged: {}", attacker.stdout());
    server.consort(&["status"]).expect_success();
    drop(attacker);
    server.await_cycles(200);
    let most_lost = u64::from(mode.contains(&"--sync"));
    judge.judge(bystander).expect(call, most_lost)
}

fn expect_strangers_safe(call: &str) {
    for mode in modes() {
        judged(mode, || against_strangers(mode, call));
    }
}

#[test]
fn a_program_that_moves_sleepers_elsewhere_moves_no_strangers() {
    expect_strangers_safe("requeue");
}

#[test]
fn a_program_that_poisons_futex_words_keeps_no_stranger_asleep() {
    expect_strangers_safe("poison");
}

#[test]
fn a_program_that_fills_futex_queues_delays_no_stranger() {
    expect_strangers_safe("queue");
}

#[test]
fn a_program_that_wakes_all_words_disturbs_no_stranger() {
    expect_strangers_safe("storm");
}

#[test]
fn a_program_that_discards_memory_stops_no_stranger() {
    expect_strangers_safe("discard");
}

#[test]
fn a_program_that_has_the_kernel_merge_pages_stops_no_stranger() {
    expect_strangers_safe("merge");
}

#[test]
fn a_program_never_gets_write_access_to_what_it_may_only_read() {
    expect_strangers_safe("unprotect");
}

#[test]
fn a_program_writes_into_no_descriptor_of_a_segment() {
    expect_strangers_safe("splice");
}

#[test]
fn a_program_that_moves_its_mappings_gets_no_write_access() {
    expect_strangers_safe("remap");
}

#[test]
fn a_program_that_sends_descriptors_of_slow_closes_delays_no_stranger() {
    expect_strangers_safe("linger");
}

#[test]
fn a_program_that_sends_files_of_a_silent_file_system_delays_no_stranger() {
    if try_hostile(&Server::timer(256), &["fuse"]).is_none() {
        return not_run("nobody may mount a file system of FUSE here");
    }
    expect_strangers_safe("fuse");
}

/// The segment of a program that plays a stream: as its owner has it.
fn ring_of(player: &Program) -> Option<String> {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", player.id())).ok()?;
    let mut paths = descriptors.filter_map(|entry| Some(entry.ok()?.path()));
    let is_ring = |path: &PathBuf| {
        let target = std::fs::read_link(path).unwrap_or_default();
        target.to_string_lossy().contains("memfd:consort-ring")
    };
    paths.find(is_ring).map(|path| path.to_string_lossy().into_owned())
}

#[test]
fn the_kernel_merges_no_pages_of_a_stream_that_plays() {
    let _alone = alone();
    let server = Server::start(&["--driver", "timer", "--quantum", "256"]);
    let path = server.directory().join("tone.wav");
    Sound::of(48_000, &[tone(440.0, 48_000, 60 * 48_000)]).write(&path);
    let player = server.spawn_consort(&["play", &path.to_string_lossy()]);
    eventually("it plays", || {
        let status = server.consort_json(&["status"]);
        let mut streams = status["streams"].as_array().into_iter().flatten();
        streams.any(|stream| stream["plays"] == true).then_some(())
    });
    let ring = ring_of(&player).expect("a player has a ring");
    let mut attacker = hostile(&server, &["merge", "--with", &ring]);
    attack(&mut attacker);
    assert!(attacker.stdout().contains("stayed\n"), "pages were merged");
}

/// `source → left ← attacker`, until the attacker is disconnected: it keeps the signal page that
/// `left` had meanwhile.
fn against_a_former_follower(mode: &[&str], call: &str) -> Result<(), String> {
    let _alone = alone();
    let server = Server::start(mode);
    let _source = server.probe(&["source", "source"]);
    let judge = Judge::of_cycles(quantum(mode)).expect("a judge was there before");
    let left = server.probe(&["monitor", "left", "--from", "source:out"]);
    let mut attacker = hostile(&server, &[call, "--to", "left:in"]);
    server.await_cycles(100);
    server.consort(&["disconnect", "hostile:out", "left:in"]).expect_success();
    // Until the page is replaced, the attacker is still a neighbour.
    server.await_cycles(200);
    attack(&mut attacker);
    if call == "discard" {
        assert!(attacker.stdout().contains("kept\n"), "it discarded memory: {}", attacker.stdout());
    }
    server.await_cycles(200);
    judge.judge(left).expect(call, u64::from(mode.contains(&"--sync")))
}

#[test]
fn a_former_predecessor_cannot_reach_the_client_that_it_fed() {
    let calls = ["requeue", "poison", "queue", "storm"].map(|call| (MODES[0], call));
    let discards = modes().into_iter().map(|mode| (mode, "discard"));
    for (mode, call) in calls.into_iter().chain(discards) {
        judged(mode, || against_a_former_follower(mode, call));
    }
}

/// `source → bystander`, and `attacker → fed`; the attacker is heard at the driver's port, too.
fn against_its_follower(mode: &[&str], call: &str) -> Result<(), String> {
    let _alone = alone();
    let server = Server::start(mode);
    let _source = server.probe(&["source", "source"]);
    let _fed = server.probe(&["monitor", "fed"]);
    let judge = Judge::of_cycles(quantum(mode)).expect("a judge was there before");
    let bystander = server.probe(&["monitor", "bystander", "--from", "source:out"]);
    let mut attacker = hostile(&server, &[call, "--to", "fed:in"]);
    server.consort(&["connect", "hostile:out", "system:playback_1"]).expect_success();
    server.await_cycles(100);
    attack(&mut attacker);
    assert!(attacker.stdout().contains("kept\n"), "it discarded memory: {}", attacker.stdout());
    drop(attacker);
    server.await_cycles(200);
    judge.judge(bystander).expect(call, u64::from(mode.contains(&"--sync")))
}

#[test]
fn a_predecessor_that_discards_memory_stops_only_its_followers() {
    for mode in modes() {
        judged(mode, || against_its_follower(mode, "discard"));
    }
}

/// `source → bystander`, and a program that is heard at the driver's port and states the same
/// untruth about itself in every cycle.
fn beside_a_liar(mode: &[&str], lie: &str) -> Result<(), String> {
    let _alone = alone();
    let server = Server::start(mode);
    let _source = server.probe(&["source", "source"]);
    let judge = Judge::of_cycles(quantum(mode)).expect("a judge was there before");
    let bystander = server.probe(&["monitor", "bystander", "--from", "source:out"]);
    let mut liar = hostile(&server, &[lie, "--to", "system:playback_1"]);
    server.consort(&["connect", "source:out", "system:playback_2"]).expect_success();
    server.await_cycles(100);
    attack(&mut liar);
    server.consort(&["status"]).expect_success();
    drop(liar);
    server.await_cycles(200);
    judge.judge(bystander).expect(lie, u64::from(mode.contains(&"--sync")))
}

fn expect_others_safe_from(lies: &[&str]) {
    for (mode, lie) in modes().into_iter().flat_map(|mode| lies.iter().map(move |lie| (mode, lie)))
    {
        judged(mode, || beside_a_liar(mode, lie));
    }
}

#[test]
fn a_program_that_lies_about_its_cycles_costs_no_other_a_cycle() {
    expect_others_safe_from(&["not-begun", "early", "every-other", "idle"]);
}

#[test]
fn a_program_that_claims_absurd_durations_costs_no_other_a_cycle() {
    expect_others_safe_from(&["durations"]);
}

#[test]
fn a_program_that_asks_for_the_transport_in_every_cycle_costs_no_other_a_cycle() {
    expect_others_safe_from(&["never-ready", "transport"]);
}

/// What a predecessor does to its follower ends with it: the follower runs again.
#[test]
fn a_follower_runs_again_after_its_predecessor_has_moved_it() {
    let _alone = alone();
    let server = Server::start(MODES[1]);
    let _source = server.probe(&["source", "source"]);
    let follower = server.probe(&["thru", "follower", "--from", "source:out"]);
    let attacker = hostile(&server, &["requeue", "--to", "follower:in"]);
    attacker.signal(Signal::USR1);
    std::thread::sleep(Duration::from_secs(1));
    drop(attacker);
    eventually("it sounds again", || {
        let listener = server.probe(&["check", "listener", "--from", "follower:out"]);
        server.await_cycles(100);
        (harness::Counts::of(listener).good > 50).then_some(())
    });
    drop(follower);
}

#[test]
fn a_client_is_gone_when_its_process_is_although_a_child_lives() {
    let server = Server::timer(256);
    let attacker = hostile(&server, &["fork"]);
    attacker.signal(Signal::USR1);
    eventually("the server knows", || server.client("hostile").is_none().then_some(()));
}
