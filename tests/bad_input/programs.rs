//! The limits of one program, in however many clients: a program that comes later finds what it
//! needs. The greedy program is the test itself.

use std::process::Command;

use harness::{Server, eventually};
use proto::hello::Role;
use proto::request::{Activation, Interests, Reply, Request};

use crate::wire::{
    ByHand, INPUT, OUTPUT, Wire, assert_says, descriptors_of, port, refused, with_bystanders,
};

/// Another program gets a client, a port and connections.
fn expect_newcomer(server: &Server) {
    let newcomer = server.probe(&["check", "newcomer"]);
    for source in ["src:out", "system:capture_1"] {
        server.consort(&["connect", source, "newcomer:in"]).expect_success();
    }
    newcomer.terminate().expect_success();
}

#[test]
fn a_program_of_two_clients_leaves_ports_for_others() {
    let start = || Server::start(&["--quantum", "256", "--port-max", "64"]);
    with_bystanders(start, |server| {
        let mut clients = ["one", "two"].map(|name| ByHand::open(server, name));
        for (client, ports) in clients.iter_mut().zip([40, 8]) {
            for number in 0..ports {
                client.register(&number.to_string(), INPUT);
            }
        }
        let [_, two] = &mut clients;
        let refusal = two.refusal(Request::RegisterPort(port("more", INPUT, None)));
        let words = ["no room for another port of one program", "the limit is 48", "close some"];
        assert_says("ports", &refusal, &words);
        expect_newcomer(server);
    });
}

#[test]
fn a_program_that_opens_clients_without_end_leaves_some_for_others() {
    let start = || Server::start(&["--quantum", "256", "--port-max", "64"]);
    with_bystanders(start, |server| {
        let mut clients: Vec<ByHand> =
            (0..16).map(|number| ByHand::open(server, &format!("greedy{number}"))).collect();
        let words = ["no room for another client of one program", "the limit is 16", "close some"];
        let more = Role::Client { name: "more".into(), exact: false, session: None };
        let refusal = Wire::connect(server).try_greet(more).expect_err("17 clients");
        assert_says("clients", &refusal, &words);
        expect_newcomer(server);
        drop(clients.pop());
        eventually("a client that has gone leaves its place", || {
            (server.status().clients.len() == 17).then_some(())
        });
        ByHand::open(server, "another");
    });
}

#[test]
fn a_program_of_two_clients_leaves_connections_for_others() {
    /// 625 connections in each client; the program may have 1024.
    const PORTS: usize = 25;
    let start = || Server::start(&["--quantum", "256", "--port-max", "256"]);
    with_bystanders(start, |server| {
        let mut clients = ["one", "two"].map(|name| ByHand::open(server, name));
        let mut answers = Vec::new();
        for client in &mut clients {
            client.add_slab();
            for number in 0..PORTS {
                client.register(&format!("out{number}"), OUTPUT);
                client.register(&format!("in{number}"), INPUT);
            }
            client.activate();
            for pair in 0..PORTS * PORTS {
                let source = format!("{}:out{}", client.name, pair / PORTS);
                let destination = format!("{}:in{}", client.name, pair % PORTS);
                answers.push(client.wire.ask(Request::Connect { source, destination }));
            }
        }
        assert_eq!(answers.iter().filter(|answer| **answer == Reply::Done).count(), 1024);
        let refusal = refused(answers.pop().expect("answers"));
        let words = ["no room for another connection of one program", "the limit is 1024"];
        assert_says("connections", &refusal, &words);
        expect_newcomer(server);
    });
}

/// Lets the server's process have this many descriptors.
fn with_descriptors(count: usize) -> impl FnOnce(&mut Command) {
    move |command| {
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {count} && exec \"$0\" \"$@\"")]);
        limited.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited.current_dir(command.get_current_dir().expect("set"));
        *command = limited;
    }
}

#[test]
fn a_program_of_many_connections_leaves_descriptors_for_others() {
    const DESCRIPTORS: usize = 512;
    let start = || {
        let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a directory");
        Server::start_with(directory, &["--quantum", "256"], with_descriptors(DESCRIPTORS))
    };
    with_bystanders(start, |server| {
        let before = descriptors_of(server);
        let mut observers = Vec::new();
        let refusal = loop {
            let mut wire = Wire::connect(server);
            match wire.try_greet(Role::Observer) {
                Ok(()) => observers.push(wire),
                Err(refusal) => break refusal,
            }
        };
        let words = ["no room for another descriptor of one program", "the limit is 128"];
        assert_says("descriptors", &refusal, &words);
        // A thread of its own closes what was refused.
        eventually("the server has no more than a quarter of its descriptors", || {
            (descriptors_of(server) - before <= DESCRIPTORS / 4).then_some(())
        });
        expect_newcomer(server);
    });
}

#[test]
fn a_program_that_adds_slabs_without_end_leaves_descriptors_for_others() {
    let start = || {
        let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a directory");
        Server::start_with(directory, &["--quantum", "256"], with_descriptors(512))
    };
    with_bystanders(start, |server| {
        let mut clients = ["one", "two"].map(|name| ByHand::open(server, name));
        let refusals = clients.each_mut().map(|client| {
            loop {
                if let Err(refusal) = client.try_add_slab() {
                    break refusal;
                }
            }
        });
        let words = ["no room for another descriptor of one program", "the limit is 128"];
        for refusal in refusals {
            assert_says("slabs", &refusal, &words);
        }
        expect_newcomer(server);
    });
}

#[test]
fn a_program_has_as_many_clients_in_cycles_as_the_driver_has_time_for() {
    let server = Server::timer(64);
    let _source = server.probe(&["source", "src"]);
    let mut clients = Vec::new();
    let activation = Activation {
        process_thread: Some(1),
        latency_callback: false,
        quantum_callback: false,
        freewheel_callback: false,
        session_callback: false,
        interests: Interests::ALL,
    };
    let refusal = loop {
        let mut client = ByHand::open(&server, "greedy");
        match client.wire.ask(Request::Activate(activation)) {
            Reply::Done => clients.push(client),
            other => break refused(other),
        }
    };
    // A quarter of 1333 µs, at 4 µs each.
    assert_eq!(clients.len(), 83);
    assert_says("activation", &refusal, &["no time", "64 frames", "its program", "larger buffer"]);
    expect_newcomer(&server);
    let refusal = clients[0].refusal(Request::SetQuantum { frames: 32 });
    assert_says("quantum", &refusal, &["no time", "the program of 'greedy", "32 frames"]);
    assert_eq!(clients[0].wire.ask(Request::SetQuantum { frames: 128 }), Reply::Done);
    let mut another = ByHand::open(&server, "another");
    assert_eq!(another.wire.ask(Request::Activate(activation)), Reply::Done);
}
