//! Programs that are too many, too fast, or do not read.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use harness::{Server, eventually, eventually_within};
use proto::encode;
use proto::hello::{Hello, Role, Welcome, encode_first};
use proto::request::{Numbered, Reply, Request};
use rt::shm::LAYOUT_VERSION;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::wire::{ByHand, INPUT, OUTPUT, Wire, descriptors_of, server, with_bystanders};

/// Memory that the server has in RAM, KiB.
fn resident_kib(server: &mut Server) -> u64 {
    let path = format!("/proc/{}/status", server.program().id());
    let status = std::fs::read_to_string(path).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_thousand_silent_connections_keep_no_client_out() {
    with_bystanders(server, |server| {
        let before = descriptors_of(server);
        let (mut silent, mut newest) = (Vec::new(), Instant::now());
        for number in 0..1000 {
            if number == 750 {
                newest = Instant::now();
            }
            silent.push(Wire::connect(server));
            if number % 250 == 0 {
                server.consort(&["status"]).expect_success();
            }
        }
        server.consort(&["status"]).expect_success();
        // 64 silent connections, and those that arrived while this was read; a thread of the server
        // closes the others when it has time. After two seconds each is closed in any case.
        let patience = Duration::from_millis(1500).saturating_sub(newest.elapsed());
        eventually_within(patience, "most of those that say nothing are closed", || {
            (descriptors_of(server) <= before + 200).then_some(())
        });
        assert_eq!(silent.len(), 1000, "held until here");
    });
}

#[test]
fn a_program_whose_first_packet_waits_is_not_closed_as_a_silent_one() {
    let mut server = server();
    let mut oldest = Wire::connect(&server);
    let mut silent: Vec<Wire> = (0..62).map(|_| Wire::connect(&server)).collect();
    // It has accepted all of them before it answers; the asking program is one more.
    server.consort(&["status"]).expect_success();
    // What the server finds first when it continues is that more connect.
    server.program().signal(Signal::STOP);
    silent.extend((0..20).map(|_| Wire::connect(&server)));
    oldest.send(&encode_first(&Hello { layout: LAYOUT_VERSION, role: Role::Observer }), &[]);
    server.program().signal(Signal::CONT);
    assert_eq!(oldest.welcome().0, Welcome::Observer);
}

#[test]
fn a_thousand_observers_at_once_are_all_answered_in_their_own_order() {
    with_bystanders(server, |server| {
        let mut observers: Vec<Wire> = (0..1000).map(|_| Wire::observer(server)).collect();
        server.consort(&["status"]).expect_success();
        for _ in 0..2 {
            let numbers: Vec<u32> = observers
                .iter_mut()
                .map(|observer| observer.request(Request::ResetMaxDelay, &[]))
                .collect();
            for (observer, number) in observers.iter_mut().zip(numbers) {
                assert_eq!(observer.answer(), Numbered { number, message: Reply::Done });
            }
        }
    });
}

/// CPU time that the server has used, in clock ticks (`utime` and `stime` in proc_pid_stat(5)).
fn cpu_ticks(server: &mut Server) -> u64 {
    let path = format!("/proc/{}/stat", server.program().id());
    let stat = std::fs::read_to_string(path).expect("the server runs");
    let (_, numbers) = stat.rsplit_once(") ").expect("a command");
    numbers.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

/// One server with few descriptors at a time: what another test has in flight counts for it.
static FEW_DESCRIPTORS: Mutex<()> = Mutex::new(());

/// Waits until no other test limits a server's descriptors.
pub(crate) fn alone_with_few_descriptors() -> MutexGuard<'static, ()> {
    FEW_DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the soft limit of another process; returns the previous one.
pub(crate) fn limit_descriptors(process: Option<Pid>, soft: u64) -> Rlimit {
    let path =
        format!("/proc/{}/limits", process.map_or(0, |process| process.as_raw_nonzero().get()));
    let limits = std::fs::read_to_string(path).expect("a process of this user");
    let line =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let maximum = line.split_whitespace().nth(1).and_then(|hard| hard.parse().ok());
    let limit = Rlimit { current: Some(soft), maximum };
    prlimit(process, Resource::Nofile, limit).expect("a process of this user")
}

#[test]
fn a_server_without_a_descriptor_left_recovers() {
    let _alone = alone_with_few_descriptors();
    with_bystanders(server, |server| {
        let mut before = Wire::observer(server);
        let process = Pid::from_raw(i32::try_from(server.program().id()).expect("a process id"));
        let few = descriptors_of(server) as u64 + 20;
        let many = limit_descriptors(process, few);
        let hello = encode_first(&Hello { layout: LAYOUT_VERSION, role: Role::Observer });
        // As many connections as are accepted, and some that wait.
        let crowd: Vec<Wire> = (0..80).map(|_| Wire::connect(server)).collect();
        crowd.iter().for_each(|wire| wire.send(&hello, &[]));
        assert!(matches!(before.ask(Request::Status), Reply::Status(_)));
        let begin = cpu_ticks(server);
        std::thread::sleep(std::time::Duration::from_secs(2));
        let used = cpu_ticks(server) - begin;
        assert!(matches!(before.ask(Request::Status), Reply::Status(_)));
        drop(crowd);
        server.consort(&["status"]).expect_success();
        prlimit(process, Resource::Nofile, many).expect("a process of this user");
        // Two seconds are 200 ticks: waiting takes a few of them, retrying without a pause takes
        // all.
        assert!(used < 50, "the server used {used} ticks in two seconds");
    });
}

#[test]
fn a_program_that_floods_the_server_and_reads_nothing_is_closed() {
    with_bystanders(server, |server| {
        let flooding = ByHand::open(server, "flood");
        let status = encode(&Numbered { number: 1, message: Request::Status });
        let mut other = Wire::observer(server);
        let before_kib = resident_kib(server);
        let mut sent = 0_u64;
        eventually("the flood is ended", || {
            for _ in 0..100 {
                match flooding.wire.try_send(&status, &[]) {
                    Ok(()) => sent += 1,
                    Err(rustix::io::Errno::WOULDBLOCK) => break,
                    Err(_) => return Some(()),
                }
            }
            assert!(
                matches!(other.ask(Request::Status), Reply::Status(_)),
                "others are answered meanwhile"
            );
            None
        });
        assert!(sent > 100, "{sent} requests came through");
        let grown_kib = resident_kib(server).saturating_sub(before_kib);
        assert!(grown_kib < 16 * 1024, "the server grew by {grown_kib} KiB");
        assert!(flooding.wire.socket().try_clone_to_owned().is_ok(), "held until here");
    });
}

#[test]
fn a_client_that_reads_no_events_costs_bounded_memory() {
    with_bystanders(server, |server| {
        let deaf = ByHand::active(server, "deaf");
        let mut busy = ByHand::active(server, "busy");
        let mut churn = |times: usize| {
            for _ in 0..times {
                let port = busy.register("in", INPUT);
                assert_eq!(busy.wire.ask(Request::UnregisterPort { port }), Reply::Done);
                while busy.events.try_receive(&mut [0; 4096]).is_ok() {}
            }
        };
        // Fills the socket and then what the server keeps for the client.
        churn(4000);
        let before_kib = resident_kib(server);
        churn(8000);
        let grown_kib = resident_kib(server).saturating_sub(before_kib);
        assert!(
            grown_kib < 1024,
            "the server grew by {grown_kib} KiB for events that no client reads"
        );
        drop(deaf);
    });
}

#[test]
fn a_client_that_reads_no_events_keeps_no_memory_of_others() {
    with_bystanders(server, |server| {
        let mut deaf = ByHand::active(server, "deaf");
        deaf.register("in", INPUT);
        let come_and_go = |server: &Server, times: usize| {
            for _ in 0..times {
                let mut passing = ByHand::active(server, "passing");
                passing.add_slab();
                passing.register("out", OUTPUT);
                let (source, destination) = (format!("{}:out", passing.name), "deaf:in".into());
                assert_eq!(passing.wire.ask(Request::Connect { source, destination }), Reply::Done);
                assert_eq!(passing.wire.ask(Request::Close), Reply::Done);
                passing.wire.assert_closed();
            }
        };
        // More than the socket holds, so that the rest waits in the server.
        come_and_go(server, 400);
        let first = descriptors_of(server);
        come_and_go(server, 400);
        // A thread of the server closes them when it has time.
        eventually_within(Duration::from_secs(2), "all descriptors of others are closed", || {
            (descriptors_of(server) <= first + 20).then_some(())
        });
    });
}
