//! One failing client never stops the transport for longer than the sync timeout.

use harness::{Program, Server, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::transport;

fn await_state(server: &Server, state: &str) {
    eventually(&format!("the transport is {state}"), || {
        (transport(server)["state"] == state).then_some(())
    });
}

fn roll(server: &Server, action: &str) {
    server.consort(&["transport", action]).expect_success();
}

/// A client that is never ready, at a server that waits for it this many seconds.
fn never_ready(server: &Server, timeout_s: &str) -> Program {
    server.probe(&["follow", "never", "--slow", "1000000000", "--sync-timeout", timeout_s])
}

#[test]
fn a_client_that_is_never_ready_is_waited_for_until_the_sync_timeout() {
    let server = Server::timer(256);
    let _never = never_ready(&server, "1");
    roll(&server, "start");
    await_state(&server, "rolling");
    roll(&server, "stop");
    await_state(&server, "stopped");
    assert_ne!(transport(&server)["frame"], json!(0), "it has rolled");
}

#[test]
fn a_slow_sync_client_that_dies_or_hangs_is_not_waited_for() {
    for signal in [Signal::KILL, Signal::STOP] {
        let server = Server::timer(256);
        let never = never_ready(&server, "100000");
        roll(&server, "start");
        await_state(&server, "starting");
        never.signal(signal);
        await_state(&server, "rolling");
        drop(never);
    }
}

fn bar_of(server: &Server) -> Value {
    transport(server)["bbt"].clone()
}

#[test]
fn a_timebase_master_that_dies_takes_only_bar_and_beat_with_it() {
    let server = Server::timer(256);
    let master = server.probe(&["lead", "leader"]);
    roll(&server, "start");
    let led = eventually("bar and beat", || {
        Some(transport(&server)).filter(|found| !found["bbt"].is_null())
    });
    assert_eq!(led["timebase"], "leader");
    let frame = led["frame"].as_u64().expect("a frame");
    assert_eq!(led["bbt"]["bar"], json!(frame / 1000 + 1), "of the same cycle as the frame: {led}");
    assert_eq!(led["bbt"]["tick"], json!(frame % 1000), "of the same cycle as the frame: {led}");

    master.signal(Signal::STOP);
    eventually("no bar of another frame", || bar_of(&server).is_null().then_some(()));
    let stopped_at = transport(&server)["frame"].as_u64();
    eventually("the piece rolls on", || {
        (transport(&server)["frame"].as_u64() > stopped_at).then_some(())
    });
    master.signal(Signal::CONT);
    eventually("the master is back", || (!bar_of(&server).is_null()).then_some(()));

    master.signal(Signal::KILL);
    eventually("no client is the timebase master", || {
        transport(&server)["timebase"].is_null().then_some(())
    });
    eventually("no bar", || bar_of(&server).is_null().then_some(()));
    assert_eq!(transport(&server)["state"], "rolling");
    let _next = server.probe(&["lead", "next"]);
    eventually("another one leads", || (!bar_of(&server).is_null()).then_some(()));
    assert_eq!(transport(&server)["timebase"], "next");
}

#[test]
fn a_transport_request_in_a_clients_last_cycle_takes_effect() {
    let server = Server::timer(1024);
    for _ in 0..10 {
        for (order, state) in [("play", "rolling"), ("stop", "stopped")] {
            // It sends the request and leaves at once.
            let script = format!("echo {order} | jack_transport");
            server.run("sh", &["-c", &script]).expect_success();
            await_state(&server, state);
        }
    }
}
