//! The limits of one client, and the error texts at each limit.

use harness::{Server, eventually};
use proto::request::{Reply, Request};
use sys::memory::OwnSlab;

use crate::wire::{ByHand, INPUT, OUTPUT, assert_says, port, refused, with_bystanders};

#[test]
fn a_client_that_registers_ports_without_end_leaves_room_for_others() {
    let start = || Server::start(&["--quantum", "1024", "--port-max", "64"]);
    with_bystanders(start, |server| {
        let mut greedy = ByHand::open(server, "greedy");
        for number in 0..48 {
            greedy.register(&number.to_string(), INPUT);
        }
        let refusal = greedy.refusal(Request::RegisterPort(port("more", INPUT, None)));
        let words = ["no room for another port of one client", "the limit is 48", "--client-ports"];
        assert_says("ports", &refusal, &words);
        server.probe(&["check", "modest"]).terminate().expect_success();
        let mut ports = greedy.wire.ask(Request::UnregisterPort { port: u32::MAX });
        assert!(matches!(ports, Reply::Error(_)), "no such port: {ports:?}");
        ports = greedy.wire.ask(Request::Status);
        assert!(matches!(ports, Reply::Status(_)), "it is served as before: {ports:?}");
    });
}

#[test]
fn a_client_may_offer_twice_the_memory_that_its_ports_need() {
    let start = || Server::start(&["--quantum", "1024", "--client-ports", "17"]);
    with_bystanders(start, |server| {
        let mut greedy = ByHand::open(server, "greedy");
        (0..5).for_each(|_| greedy.add_slab());
        let slab = OwnSlab::create().expect("memory");
        let refusal = greedy.refusal_with(Request::AddSlab, &[slab.segment().fd()]);
        let words = [
            "no room for another slab of one client's output ports",
            "the limit is 5",
            "--client-ports",
        ];
        assert_says("slabs", &refusal, &words);
        greedy.register("out", OUTPUT);
    });
}

#[test]
fn a_client_that_connects_without_end_is_stopped() {
    let server = Server::start(&["--quantum", "1024", "--port-max", "4096"]);
    let _source = server.probe(&["source", "source"]);
    let mut greedy = ByHand::open(&server, "greedy");
    greedy.add_slab();
    greedy.register("out", OUTPUT);
    greedy.activate();
    let mut inputs = 0;
    let refusal = loop {
        let name = format!("in{inputs}");
        greedy.register(&name, INPUT);
        let source = format!("{}:out", greedy.name);
        let destination = format!("{}:{name}", greedy.name);
        match greedy.wire.ask(Request::Connect { source, destination }) {
            Reply::Done => inputs += 1,
            other => break refused(other),
        }
    };
    assert!(inputs > 1000, "{inputs}");
    let words =
        ["no room for another connection of one client", "disconnect some ports of 'greedy'"];
    assert_says("connections", &refusal, &words);
    // Other clients can still connect.
    server.probe(&["check", "other", "--from", "source:out"]).terminate().expect_success();
}

#[test]
fn requests_sent_without_waiting_are_all_answered() {
    const BURST: usize = 150;
    // Long cycles, so that whatever waits for the next one waits long.
    let server = Server::timer(8192);
    let mut greedy = ByHand::open(&server, "greedy");
    eventually("too many requests wait", || {
        let numbers: Vec<u32> =
            (0..BURST).map(|_| greedy.wire.request(Request::Deactivate, &[])).collect();
        let mut answers: Vec<_> = numbers.iter().map(|_| greedy.wire.answer()).collect();
        answers.sort_by_key(|answer| answer.number);
        assert!(answers.iter().map(|answer| answer.number).eq(numbers), "each is answered once");
        let refusals = answers.into_iter().filter(|answer| answer.message != Reply::Done);
        let refusals: Vec<String> = refusals.map(|answer| refused(answer.message)).collect();
        for refusal in &refusals {
            let words = [
                "no room for another request of one program that waits",
                "the limit is 64",
                "wait",
            ];
            assert_says("requests", refusal, &words);
        }
        assert!(refusals.len() <= BURST - 64, "{}", refusals.len());
        (!refusals.is_empty()).then_some(())
    });
    assert_eq!(greedy.wire.ask(Request::Deactivate), Reply::Done);
}
