//! A program that sends descriptors and never receives them: the kernel carries no others of its
//! user.

use std::fs::File;
use std::os::fd::AsFd;

use harness::{Server, eventually};
use proto::hello::{Hello, Role, Welcome, encode_first};
use proto::request::{Reply, Request};
use rt::shm::LAYOUT_VERSION;
use rustix::process::{Pid, Resource, prlimit};
use sys::socket::{Connection, MAX_DESCRIPTORS};

use crate::crowds::{alone_with_few_descriptors, limit_descriptors};
use crate::wire::{Wire, assert_says, descriptors_of, server, with_bystanders};

/// Descriptors on their way between two sockets of this process, until they are dropped.
fn in_flight(count: usize) -> (Connection, Connection) {
    let (one, other) = Connection::pair().expect("two sockets");
    let null = File::open("/dev/null").expect("a file");
    for _ in 0..count.div_ceil(MAX_DESCRIPTORS) {
        one.try_send(b"x", &[null.as_fd(); MAX_DESCRIPTORS]).expect("this process may have them");
    }
    (one, other)
}

/// Runs `test` while more descriptors are in flight than the server may have open, with an observer
/// that was there before.
fn while_in_flight(test: impl Fn(&Server, &mut Wire, (Connection, Connection))) {
    let _alone = alone_with_few_descriptors();
    with_bystanders(server, |server| {
        let mut early = Wire::observer(server);
        let process = Pid::from_raw(i32::try_from(server.program().id()).expect("a process id"));
        let few = descriptors_of(server) + 100;
        let many = limit_descriptors(process, few as u64);
        test(server, &mut early, in_flight(few + MAX_DESCRIPTORS));
        prlimit(process, Resource::Nofile, many).expect("a process of this user");
    });
}

fn newcomer(server: &Server, role: Role) -> Wire {
    let newcomer = Wire::connect(server);
    newcomer.send(&encode_first(&Hello { layout: LAYOUT_VERSION, role }), &[]);
    newcomer
}

fn client(name: &str) -> Role {
    Role::Client { name: name.into(), exact: true, session: None }
}

fn has_client(observer: &mut Wire, name: &str) -> bool {
    match observer.ask(Request::Status) {
        Reply::Status(status) => status.clients.iter().any(|client| client.name == name),
        other => panic!("no status: {other:?}"),
    }
}

#[test]
fn newcomers_wait_until_the_kernel_carries_their_memory() {
    while_in_flight(|server, early, in_flight| {
        let mut newcomers = [newcomer(server, Role::Observer), newcomer(server, client("late"))];
        // The client is there before its welcome is sent.
        eventually("the server has admitted both", || has_client(early, "late").then_some(()));
        drop(in_flight);
        let welcomes = newcomers.each_mut().map(Wire::welcome);
        let [(observer, memory), (late, client_memory)] = &welcomes;
        assert_eq!((observer, memory.len()), (&Welcome::Observer, 3));
        assert!(matches!(late, Welcome::Client { name, .. } if name == "late"), "{late:?}");
        assert_eq!(client_memory.len(), 6);
        for newcomer in &mut newcomers {
            assert!(matches!(newcomer.ask(Request::Status), Reply::Status(_)));
        }
    });
}

#[test]
fn newcomers_that_have_waited_too_long_learn_why() {
    while_in_flight(|server, early, in_flight| {
        for role in [Role::Observer, client("late")] {
            let reason = newcomer(server, role).sent_away();
            assert_says("in flight", &reason, &["sends many", "receives none"]);
        }
        assert!(!has_client(early, "late"));
        drop(in_flight);
    });
}
