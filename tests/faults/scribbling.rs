//! A client that overwrites every byte of shared memory that it can write.

use std::collections::HashSet;
use std::path::Path;

use harness::{Counts, Judge, MODES, Program, Server, eventually, modes};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::scenario::{Scenario, alone, judged, quantum};

#[test]
fn a_client_that_scribbles_over_its_memory_disturbs_only_its_readers() {
    for mode in [MODES[1], MODES[3]] {
        judged(mode, || {
            let mut scenario = Scenario::new(mode, "scribble");
            scenario.trigger_fault();
            eventually("it has begun", || {
                scenario.victim.stdout().contains("scribbling over").then_some(())
            });
            scenario.expect_new_clients_to_work();
            eventually("it is done", || {
                let done = scenario.victim.stdout().contains("scribbled\n");
                (done || !scenario.victim.is_running()).then_some(())
            });
            scenario.expect_new_clients_to_work();
            assert!(
                scenario.server.program().is_running(),
                "{}",
                scenario.server.program().stderr()
            );
            scenario.await_cycles(100);
            scenario.expect_bystander_undisturbed(&format!("{mode:?}")).map(drop)
        });
    }
}

/// The signal pages that a process has mapped, by inode.
fn signal_pages(process: &Program) -> HashSet<String> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.id())).unwrap_or_default();
    let pages = maps.lines().filter(|line| line.contains("memfd:consort-signals"));
    pages.filter_map(|line| line.split_whitespace().nth(4)).map(str::to_owned).collect()
}

/// How many of the signal pages that the server uses a program can write.
fn writable_pages(server: &mut Server, program: &Program) -> usize {
    signal_pages(server.program()).intersection(&signal_pages(program)).count()
}

/// `source → left ← hoarder`, until the hoarder is disconnected and scribbles over all memory that
/// it ever had.
fn scribble_after_disconnecting(mode: &[&str]) -> Result<(), String> {
    let _alone = alone();
    let mut server = Server::start(mode);
    let _source = server.probe(&["source", "source"]);
    // It sends silence, which changes no sample.
    let mut hoarder = server.probe(&["follow", "hoarder", "--fault", "hoard"]);
    let judge = Judge::of_cycles(quantum(mode)).expect("a judge was there before");
    let left = server.probe(&["monitor", "left", "--from", "source:out"]);
    server.consort(&["connect", "hoarder:out", "left:in"]).expect_success();
    eventually("it can signal its follower", || {
        (writable_pages(&mut server, &hoarder) == 2).then_some(())
    });
    hoarder.signal(Signal::USR1);
    eventually("it keeps the page", || hoarder.stdout().contains("hoarded\n").then_some(()));
    server.consort(&["disconnect", "hoarder:out", "left:in"]).expect_success();
    eventually("it can signal itself alone", || {
        (writable_pages(&mut server, &hoarder) == 1).then_some(())
    });
    hoarder.signal(Signal::USR1);
    eventually("it is done", || {
        (hoarder.stdout().contains("scribbled\n") || !hoarder.is_running()).then_some(())
    });
    server.await_cycles(100);
    judge.judge(left).expect("a former follower", 0)
}

#[test]
fn a_client_that_scribbles_over_old_memory_disturbs_no_former_peer() {
    for mode in modes() {
        judged(mode, || scribble_after_disconnecting(mode));
    }
}

/// Has a client signal another one, ends it, and waits until none of the pages that it could
/// signal is in use.
fn expect_replaced_pages(end: impl FnOnce(Program)) {
    let mut server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let follower = server.probe(&["check", "follower", "--from", "source:out"]);
    let hoarder = server.probe(&["follow", "hoarder", "--fault", "hoard"]);
    server.consort(&["connect", "hoarder:out", "follower:in"]).expect_success();
    let mut connected = HashSet::new();
    eventually("it can signal its follower", || {
        connected = signal_pages(server.program());
        (writable_pages(&mut server, &hoarder) == 2).then_some(())
    });
    let theirs: HashSet<String> =
        signal_pages(&hoarder).intersection(&connected).cloned().collect();
    end(hoarder);
    eventually("none of its pages is in use", || {
        signal_pages(server.program()).is_disjoint(&theirs).then_some(())
    });
    server.await_cycles(200);
    let counts = Counts::of(follower);
    assert!(counts.good > 100 && counts.wrong == 0, "{counts:?}");
}

#[test]
fn the_signal_page_of_a_client_is_replaced_when_a_neighbour_closes() {
    expect_replaced_pages(|neighbour| drop(neighbour.terminate().expect_success()));
}

/// It has disconnected nothing before its end, and a child may have its pages mapped.
#[test]
fn the_signal_page_of_a_client_is_replaced_when_a_neighbour_is_killed() {
    expect_replaced_pages(drop);
}

#[test]
fn a_predecessor_that_maps_nothing_keeps_no_former_one_in_reach() {
    let _alone = alone();
    let mut server = Server::timer(256);
    let mut source = server.probe(&["source", "source"]);
    let mut former = server.probe(&["follow", "former"]);
    let left = server.probe(&["monitor", "left", "--from", "source:out"]);
    server.consort(&["connect", "former:out", "left:in"]).expect_success();
    // With one page for each client, none is under way: cycles have the page that it has mapped.
    eventually("it can signal its follower", || {
        let pages = signal_pages(server.program()).len();
        (pages == 3 && writable_pages(&mut server, &former) == 2).then_some(())
    });
    // It has no descriptor for the fresh page.
    let pid = Pid::from_raw(source.id() as i32).expect("it runs");
    let is_free = |number: &u64| !Path::new(&format!("/proc/{}/fd/{number}", source.id())).exists();
    let free = (0..NORMAL_LIMIT).find(is_free).expect("it has few");
    let limits = |current| Rlimit { current: Some(current), maximum: Some(NORMAL_LIMIT) };
    prlimit(Some(pid), Resource::Nofile, limits(free)).expect("ours");
    server.consort(&["disconnect", "former:out", "left:in"]).expect_success();
    eventually("it can signal itself alone", || {
        (writable_pages(&mut server, &former) == 1).then_some(())
    });
    assert!(source.is_running() && former.is_running());
    assert_eq!(writable_pages(&mut server, &source), 1, "it is silent");
    prlimit(Some(pid), Resource::Nofile, limits(NORMAL_LIMIT)).expect("ours");
    for order in ["disconnect", "connect"] {
        server.consort(&[order, "source:out", "left:in"]).expect_success();
    }
    eventually("it is heard again", || (writable_pages(&mut server, &source) == 2).then_some(()));
    drop(left);
}

const NORMAL_LIMIT: u64 = 1024;
