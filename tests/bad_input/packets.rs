//! Packets after the first that are no requests, or carry descriptors that they must not carry.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use proto::request::{Numbered, Reply, Request};
use proto::{MAX_PACKET_BYTES, encode};
use rustix::net::sockopt::set_socket_linger;
use sys::socket::MAX_DESCRIPTORS;

use crate::wire::{ByHand, Wire, assert_says, in_modes, refused, server};

#[test]
fn packets_that_are_no_requests_are_refused_one_by_one() {
    let good = encode(&Numbered { number: 9, message: Request::SetQuantum { frames: 64 } });
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("one byte", vec![0xff], "1 bytes that are not a message"),
        ("no such request", vec![1, 0xff, 0xff, 0xff, 0xff, 0x0f], "not a message"),
        ("truncated", good[..good.len() - 1].to_vec(), "not a message"),
        ("with a tail", [&good[..], &[0]].concat(), "ends 1 bytes before its packet does"),
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec(), "message"),
        ("oversized", vec![0; MAX_PACKET_BYTES + 1], "too long"),
    ];
    in_modes(|server| {
        let mut client = ByHand::open(server, "bad");
        let mut observer = Wire::observer(server);
        for (case, packet, word) in &cases {
            for wire in [&mut client.wire, &mut observer] {
                wire.send(packet, &[]);
                let answer = wire.answer();
                assert_eq!(answer.number, 0, "{case}: of no request");
                assert_says(case, &refused(answer.message), &["did not understand", word]);
                assert!(
                    matches!(wire.ask(Request::Status), Reply::Status(_)),
                    "{case}: the connection stays open"
                );
            }
        }
    });
}

#[test]
fn an_overlong_request_is_refused_with_the_reason() {
    let server = server();
    let name = "x".repeat(MAX_PACKET_BYTES);
    let finished = server.consort(&["connect", &name, "other:in"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("too long"), "{}", finished.stderr);
}

#[test]
fn an_empty_packet_ends_its_connection_only() {
    in_modes(|server| {
        let mut client = ByHand::open(server, "bad");
        let null = std::fs::File::open("/dev/null").expect("a device");
        client.wire.send(b"", &[null.as_fd()]);
        client.wire.assert_closed();
    });
}

#[test]
fn an_unexpected_descriptor_ends_its_connection() {
    let null = std::fs::File::open("/dev/null").expect("a device");
    in_modes(|server| {
        let few = vec![null.as_fd(); MAX_DESCRIPTORS];
        for _ in 0..20 {
            let mut client = ByHand::open(server, "bad");
            let text = client.refusal_with(Request::Status, &few);
            assert_says("a status", &text, &["must not carry a descriptor"]);
            client.wire.assert_closed();
            let mut observer = Wire::observer(server);
            let reply = observer.ask_with(Request::AddSlab, &few);
            assert_says("an observer's slab", &refused(reply), &["must not carry a descriptor"]);
            observer.assert_closed();
            let mut silent = Wire::connect(server);
            silent.send(b"not a hello", &few);
            assert_says("a hello", &silent.sent_away(), &["must not carry a descriptor"]);
            let mut answering = ByHand::active(server, "bad");
            answering.send_event_answer(b"no answer", &few);
            answering.wire.assert_closed();
        }
    });
}

/// A connected TCP socket whose close lasts an hour, and its other end, with which that ends.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let mut socket = TcpStream::connect(address).expect("it listens");
    let (other, _) = listener.accept().expect("it connects");
    set_socket_linger(&socket, Some(Duration::from_secs(3600))).expect("an option");
    socket.set_nonblocking(true).expect("an option");
    while socket.write(&[0; 65_536]).is_ok() {}
    (socket.into(), other)
}

#[test]
fn a_descriptor_whose_close_lasts_delays_no_answer() {
    in_modes(|server| {
        let mut others = Vec::new();
        let mut with_slow = |send: &dyn Fn(BorrowedFd<'_>)| {
            let (slow, other) = lingering();
            others.push(other);
            send(slow.as_fd());
            // The server has the last one, unless it was faster.
            std::thread::spawn(move || drop(slow));
        };
        let status = encode(&Numbered { number: 1, message: Request::Status });
        let hello = Wire::connect(server);
        with_slow(&|slow| hello.send(b"not a hello", &[slow]));
        // The server closes this one, with a packet in it that it never receives.
        let unread = Wire::connect(server);
        unread.send(b"not a hello", &[]);
        with_slow(&|slow| {
            let _ = unread.try_send(b"never received", &[slow]);
        });
        let observer = Wire::observer(server);
        with_slow(&|slow| observer.send(&status, &[slow]));
        let client = ByHand::open(server, "bad");
        with_slow(&|slow| client.wire.send(&status, &[slow]));
        let answering = ByHand::active(server, "bad");
        with_slow(&|slow| answering.send_event_answer(b"no answer", &[slow]));
        for _ in 0..10 {
            let mut other = Wire::observer(server);
            assert!(matches!(other.ask(Request::Status), Reply::Status(_)));
        }
    });
}

#[test]
fn a_packet_with_more_descriptors_than_fit_is_refused() {
    let null = std::fs::File::open("/dev/null").expect("a device");
    in_modes(|server| {
        let status = encode(&Numbered { number: 1, message: Request::Status });
        for count in [MAX_DESCRIPTORS + 1, MAX_DESCRIPTORS + 2, 253] {
            let mut client = ByHand::open(server, "bad");
            client.wire.send(&status, &vec![null.as_fd(); count]);
            let text = refused(client.wire.answer().message);
            assert_says(&format!("{count} descriptors"), &text, &["more descriptors than fit"]);
            client.wire.assert_closed();
        }
    });
}

#[test]
fn answers_with_tokens_that_the_server_never_gave_change_nothing() {
    use proto::event::Answer;
    in_modes(|server| {
        let mut client = ByHand::active(server, "bad");
        let other = ByHand::active(server, "other");
        for token in (0..200).chain([u64::MAX]) {
            let answers =
                [Answer::Mapped { token }, Answer::NotMapped { token }, Answer::Called { token }];
            for answer in answers {
                let sent = client.events.send_until(&encode(&answer), &[], Some(u64::MAX));
                sent.expect("the server reads answers");
            }
        }
        client.events.try_send(b"no answer at all", &[]).expect("room");
        client.events.try_send(&[0; 1000], &[]).expect("room");
        assert!(matches!(client.wire.ask(Request::Status), Reply::Status(_)));
        drop(other);
    });
}
