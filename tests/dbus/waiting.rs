//! What the service does while nothing happens: it sleeps, and starts no server.

use std::time::Duration;

use harness::{Program, binary, eventually, in_three_attempts, wake_ups};
use sys::poll::{Interest, Poller};
use sys::socket::Listener;

use crate::bus::Bus;

const IS_STARTED: &str = "org.jackaudio.JackControl.IsStarted";

#[test]
fn a_server_that_its_first_program_would_start_is_not_started_by_looking_for_it() {
    let mut bus = Bus::start();
    // As systemd listens in the place of a server.
    let socket = bus.directory().join("consort/under-test/control");
    let listener = Listener::bind(&socket).expect("the name is free");
    let poller = Poller::new().expect("a poller");
    poller.add(&listener, 1, Interest::Readable).expect("added");
    bus.start_again();
    assert_eq!(bus.answer(IS_STARTED, &[]), "(false,)");
    let in_a_second = sys::clock::now_ns() + 1_000_000_000;
    let mut calls = Vec::new();
    poller.wait(&mut calls, Some(in_a_second)).expect("waited");
    assert_eq!(calls, [], "nobody has connected");
}

#[test]
fn the_service_sleeps_while_nothing_changes_with_a_server_and_without() {
    in_three_attempts(|| {
        let mut bus = Bus::start();
        let service = bus.service().id();
        let expect_sleep = |what: &str| {
            std::thread::sleep(Duration::from_millis(500));
            let before = wake_ups(service);
            std::thread::sleep(Duration::from_secs(2));
            match wake_ups(service) - before {
                0 => Ok(()),
                woken => Err(format!("{what}: it woke {woken} times")),
            }
        };
        expect_sleep("without a server")?;
        let mut server = bus.command(&binary("consort").to_string_lossy());
        server.args(["run", "--driver", "timer"]);
        let server = Program::start(server);
        eventually("it is seen", || (bus.answer(IS_STARTED, &[]) == "(true,)").then_some(()));
        expect_sleep("with a server")?;
        server.terminate();
        Ok(())
    });
}
