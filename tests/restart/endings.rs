//! The end of the grace period, and servers that stop in order.

use std::time::{Duration, Instant};

use harness::{OtherRelease, Server, eventually};

use crate::scenario::Witness;

/// Longer than a restart takes, shorter than the default.
const GRACE_MS: u64 = 1500;

#[test]
fn the_shutdown_callback_comes_at_the_end_of_the_grace_period() {
    let grace = GRACE_MS.to_string();
    for (what, options, environment) in [
        ("the server's", vec!["--quantum", "256", "--grace", &grace], vec![]),
        ("the program's own", vec!["--quantum", "256"], vec![("CONSORT_GRACE_MS", grace.as_str())]),
    ] {
        let mut server = Server::start(&options);
        let mut active = Witness::start_with(&server, &["active"], &environment);
        let mut idle = Witness::start_with(&server, &["+idle"], &environment);
        let before = Instant::now();
        server.kill();
        for witness in [&mut active, &mut idle] {
            let line = witness.await_line("shutdown");
            assert!(line.contains("no other replaced it within 1.5 s"), "{what}: {line}");
            assert!(
                before.elapsed() >= Duration::from_millis(GRACE_MS),
                "{what}: after {:?}",
                before.elapsed()
            );
        }
        // A server that comes later is not theirs.
        server.start_again();
        eventually("newcomers are let in", || server.lsp(&[]).contains("system:").then_some(()));
        assert!(!server.lsp(&[]).contains("active:"), "{what}");
        for mut witness in [active, idle] {
            assert_eq!(witness.lines("shutdown").len(), 1, "{what}: once");
            witness.seen();
        }
    }
}

#[test]
fn a_server_that_stops_in_order_is_a_shutdown_at_once() {
    // Much longer than a test waits for anything.
    let long = ("CONSORT_GRACE_MS", "3600000");
    let server = Server::timer(256);
    let mut witness = Witness::start_with(&server, &["witness"], &[long]);
    server.stop().expect_success();
    let line = witness.await_line("shutdown");
    assert!(line.contains("signal Terminate"), "{line}");
    witness.seen();
    let server = Server::timer(256);
    let mut witness = Witness::start_with(&server, &["witness"], &[long]);
    server.consort(&["stop"]).expect_success();
    let line = witness.await_line("shutdown");
    assert!(line.contains("a program asked for it"), "{line}");
    witness.seen();
}

#[test]
fn without_a_grace_period_a_dead_server_is_a_shutdown_at_once() {
    let mut server = Server::start(&["--quantum", "256", "--grace", "0"]);
    let mut witness = Witness::start(&server, &["witness"]);
    server.kill();
    let line = witness.await_line("shutdown");
    assert!(line.contains("the server has closed the connection"), "{line}");
    witness.seen();
}

#[test]
fn a_server_that_takes_no_client_back_says_why() {
    for (options, words) in [
        (&["--quantum", "256", "--rate", "44100"][..], "knows a sample rate of 48000 Hz"),
        (&["--quantum", "256", "--capture", "20"], "in use or out of range"),
    ] {
        let mut server = Server::timer(256);
        let mut witness = Witness::start(&server, &["witness"]);
        server.kill();
        server.start_another(options);
        let line = witness.await_line("shutdown");
        assert!(line.contains("does not take the client back") && line.contains(words), "{line}");
        witness.seen();
        assert!(!server.lsp(&[]).contains("witness:"));
    }
}

#[test]
fn a_server_of_another_release_takes_no_client_back_and_says_what_to_do() {
    for (begin, words) in OtherRelease::WAYS {
        let mut server = Server::timer(256);
        let mut witness = Witness::start(&server, &["witness"]);
        // It has no callback that gets the reason.
        let mut metronome = server.spawn("jack_metro", &["-b", "120"]);
        server.await_active("metro");
        server.kill();
        let _other = begin(server.directory());
        let line = witness.await_line("shutdown");
        assert!(line.contains(words) && line.contains("restart the older"), "{line}");
        witness.seen();
        eventually("its user reads it", || metronome.stderr().contains(words).then_some(()));
    }
}
