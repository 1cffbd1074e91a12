//! A client that overwrites every byte of shared memory that it can write.

use std::collections::HashSet;

use harness::{Counts, Program, Server, eventually};
use rustix::process::Signal;

use crate::stage::{MODES, Stage, alone, expect_undisturbed, withstand};

#[test]
fn a_client_that_scribbles_over_all_its_shared_memory_disturbs_nobody_that_it_does_not_feed() {
    for mode in [MODES[1], MODES[3]] {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "scribble");
            stage.strike();
            eventually("it has begun", || stage.victim.stdout().contains("scribbling over").then_some(()));
            stage.expect_new_clients_to_work();
            eventually("it is done", || {
                let done = stage.victim.stdout().contains("scribbled\n");
                (done || !stage.victim.is_running()).then_some(())
            });
            stage.expect_new_clients_to_work();
            assert!(stage.server.program().is_running(), "{}", stage.server.program().stderr());
            stage.await_cycles(100);
            let (beside, _) = stage.counts();
            expect_undisturbed(&format!("{mode:?}"), beside)
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

/// `source → left ← hoarder`, until the hoarder is disconnected and scribbles over what it ever had: what is left lost.
fn scribble_after_disconnecting(mode: &[&str]) -> Result<(), String> {
    let _alone = alone();
    let mut server = Server::start(mode);
    let _source = server.probe(&["source", "source"]);
    // It sends silence, which changes no sample.
    let mut hoarder = server.probe(&["follow", "hoarder", "--fault", "hoard"]);
    let left = server.probe(&["check", "left", "--from", "source:out"]);
    server.consort(&["connect", "hoarder:out", "left:in"]).expect_success();
    eventually("it can signal its follower", || (writable_pages(&mut server, &hoarder) == 2).then_some(()));
    hoarder.signal(Signal::USR1);
    eventually("it keeps the page", || hoarder.stdout().contains("hoarded\n").then_some(()));
    server.consort(&["disconnect", "hoarder:out", "left:in"]).expect_success();
    eventually("it can signal itself alone", || (writable_pages(&mut server, &hoarder) == 1).then_some(()));
    hoarder.signal(Signal::USR1);
    eventually("it is done", || {
        (hoarder.stdout().contains("scribbled\n") || !hoarder.is_running()).then_some(())
    });
    server.await_cycles(100);
    expect_undisturbed("a former follower", Counts::of(left))
}

#[test]
fn a_client_that_scribbles_over_all_it_ever_had_disturbs_nobody_that_it_was_disconnected_from() {
    for mode in MODES {
        withstand(mode, || scribble_after_disconnecting(mode));
    }
}

#[test]
fn the_page_of_a_follower_is_replaced_when_its_predecessor_closes_and_lives_on() {
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
    let theirs: HashSet<String> = signal_pages(&hoarder).intersection(&connected).cloned().collect();
    hoarder.terminate().expect_success();
    eventually("none of its pages is in use", || {
        signal_pages(server.program()).is_disjoint(&theirs).then_some(())
    });
    server.await_cycles(200);
    let counts = Counts::of(follower);
    assert!(counts.good > 100 && counts.wrong == 0, "{counts:?}");
}
