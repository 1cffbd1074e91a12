//! Freewheel: cycles that wait for the graph and for nothing else.

use harness::{Counts, Server, eventually, in_three_attempts};
use rustix::process::Signal;

fn xruns(server: &Server) -> u64 {
    u64::from(server.status().xruns)
}

fn freewheel(server: &Server, on: &str) {
    server.run("jack_freewheel", &[on]).expect_success();
    assert_eq!(server.status().freewheel, on == "y");
}

#[test]
fn freewheel_cycles_do_not_wait_for_the_clock() {
    // A cycle takes 170 ms by the clock: what is awaited below takes four minutes by it.
    let server = Server::timer(8192);
    let _source = server.probe(&["source", "source"]);
    let _thru = server.probe(&["thru", "thru", "--from", "source:out"]);
    freewheel(&server, "y");
    let check = server.probe(&["check", "check", "--from", "thru:out"]);
    server.await_cycles(1500);
    let Counts { cycles, good, silent, wrong, missed } = Counts::of(check);
    assert!(cycles > 1000, "the checker took part: {cycles}");
    assert_eq!((good, silent, wrong, missed), (cycles, 0, 0, 0));
    freewheel(&server, "n");
}

#[test]
fn freewheel_without_clients_does_not_wait_for_the_clock_either() {
    let server = Server::timer(8192);
    freewheel(&server, "y");
    // Four minutes by the clock.
    server.await_cycles(1500);
    freewheel(&server, "n");
    let _source = server.probe(&["source", "source"]);
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    server.await_cycles(20);
    let counts = Counts::of(check);
    assert!(counts.good > 0 && counts.wrong == 0, "{counts:?}");
}

#[test]
fn cycles_follow_the_clock_again_after_freewheel() {
    in_three_attempts(|| {
        let server = Server::timer(1024);
        let _source = server.probe(&["source", "source"]);
        let check = server.probe(&["check", "check", "--from", "source:out"]);
        server.await_cycles(20);
        for _ in 0..3 {
            freewheel(&server, "y");
            server.await_cycles(500);
            freewheel(&server, "n");
            let before = xruns(&server);
            server.await_cycles(30);
            let after = xruns(&server);
            if after != before {
                return Err(format!("{} xruns in 30 cycles", after - before));
            }
        }
        let counts = Counts::of(check);
        assert_eq!(counts.wrong, 0, "{counts:?}");
        // In the first cycles as well, and in those after a switch.
        let xruns = xruns(&server);
        if counts.silent > 0 && xruns > 0 {
            return Err(format!("{counts:?}, with {xruns} xruns"));
        }
        assert_eq!(counts.silent, 0, "{counts:?}");
        Ok(())
    });
}

#[test]
fn nothing_is_played_or_recorded_in_freewheel() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    server.run("jack_connect", &["source:out", "system:playback_1"]).expect_success();
    freewheel(&server, "y");
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    server.run("jack_connect", &["source:out", "system:playback_2"]).expect_success();
    server.await_cycles(100);
    drop(check);
    freewheel(&server, "n");
    for port in ["system:playback_1", "system:playback_2"] {
        server.await_connection(port, "source:out");
    }
}

#[test]
fn freewheel_ends_on_request_even_if_a_client_hangs_in_it() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let victim = server.probe(&["thru", "victim", "--from", "source:out"]);
    freewheel(&server, "y");
    server.await_cycles(100);
    victim.signal(Signal::STOP);
    freewheel(&server, "n");
    server.await_cycles(100);
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    server.await_cycles(100);
    assert_eq!(Counts::of(check).wrong, 0);
}

#[test]
fn freewheel_waits_once_for_a_client_that_is_stopped() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let victim = server.probe(&["thru", "victim", "--from", "source:out"]);
    freewheel(&server, "y");
    server.await_cycles(100);
    victim.signal(Signal::STOP);
    let check = server.probe(&["check", "check", "--from", "source:out"]);
    // One that waits ten seconds for each of them does not get so far.
    server.await_cycles(1000);
    let is_left_out = || server.client("victim").is_some_and(|victim| victim.bypassed);
    eventually("the victim is left out", || is_left_out().then_some(()));
    victim.signal(Signal::CONT);
    eventually("the victim is back", || (!is_left_out()).then_some(()));
    freewheel(&server, "n");
    assert_eq!(Counts::of(check).wrong, 0);
}

#[test]
fn a_mode_that_is_already_in_force_is_refused() {
    let server = Server::timer(256);
    // The program does not tell whether it was.
    let complaint = server.run("jack_freewheel", &["n"]).expect_success().stderr;
    assert!(complaint.contains("does not freewheel already"), "{complaint}");
}
