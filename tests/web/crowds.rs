//! Browsers that are too many, do not read, are slow, vanish, or are no browsers: clear errors, and
//! no effect on the sound.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use harness::eventually;
use serde_json::json;

use crate::http::{Events, connect, get, order, read_answer, request};
use crate::served::{metric, served, with_sound};

fn browsers(address: SocketAddr) -> f64 {
    metric(address, "consort_browsers").expect("counted")
}

#[test]
fn a_hundred_browsers_that_do_not_listen_cost_nothing() {
    with_sound(|_, address| {
        let mut all: Vec<Events> = (0..100).map(|_| Events::of(address)).collect();
        for events in &mut all {
            events.await_event("graph", "the graph", |graph| graph.is_array());
            events.await_event("live", "the server", |live| live["up"] == true);
        }
        assert!(browsers(address) >= 100.0);
        let deaf: Vec<TcpStream> = (0..100).map(|_| asking_for_events(address)).collect();
        eventually("the deaf ones are counted", || (browsers(address) >= 200.0).then_some(()));
        for events in &mut all {
            events.await_event("live", "the server, next to browsers that do not read", |live| {
                live["up"] == true
            });
        }
        drop(deaf);
        all.into_iter().for_each(Events::end);
        eventually("all have gone", || (browsers(address) == 0.0).then_some(()));
    });
}

fn asking_for_events(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(request("GET", "/events", address, &[], "").as_bytes()).expect("sent");
    stream
}

#[test]
fn more_browsers_than_there_is_room_for_are_refused() {
    let (_server, address) = served(&["--quantum", "4096"]);
    let mut first = Events::of(address);
    let mut others: Vec<TcpStream> = (0..255).map(|_| asking_for_events(address)).collect();
    eventually("there is no room", || {
        let answer = refusal_of(address)?;
        assert_eq!(
            (answer.status, answer.body.trim()),
            (503, "too many browsers watch this server.")
        );
        Some(())
    });
    first.await_event("live", "the server", |live| live["up"] == true);
    others.truncate(100);
    eventually("there is room again", || refusal_of(address).is_none().then_some(()));
}

/// The answer to one browser too many.
fn refusal_of(address: SocketAddr) -> Option<crate::http::Answer> {
    let mut stream = connect(address);
    let _ = stream.write_all(request("GET", "/metrics", address, &[], "").as_bytes());
    read_answer(stream).filter(|answer| answer.status != 200)
}

/// Sends only `bytes`; returns the status of the answer, if there is one.
fn answered(address: SocketAddr, bytes: &[u8]) -> Option<u16> {
    let mut stream = connect(address);
    // It may be refused before all of it is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.split(' ').nth(1).and_then(|status| status.parse().ok())
}

/// A description, the bytes, and the statuses that may answer them; `None`: the connection is
/// closed.
type Case = (&'static str, Vec<u8>, &'static [Option<u16>]);

#[test]
fn malformed_requests_do_not_disturb_the_sound() {
    with_sound(|_, address| {
        let post = |body: &str| {
            request("POST", "/order", address, &[("Content-Type", "application/json")], body)
                .into_bytes()
        };
        let long = "x".repeat(1 << 20);
        let name = "a".repeat(300);
        let head = format!("GET / HTTP/1.1\r\nHost: {address}\r\n");
        let numerous: String = (0..1000).map(|number| format!("X-{number}: 1\r\n")).collect();
        let cases: Vec<Case> = vec![
            ("nothing", vec![], &[None]),
            ("zeros", vec![0; 100_000], &[Some(400), None]),
            (
                "a greeting of TLS",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
                &[Some(400), None],
            ),
            ("another protocol", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), &[Some(400), None]),
            ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[Some(400), Some(505), None]),
            ("half a request", b"GET / HT".to_vec(), &[Some(400), None]),
            ("no host", b"GET / HTTP/1.0\r\n\r\n".to_vec(), &[Some(400)]),
            (
                "a long path",
                format!("GET /{long} HTTP/1.0\r\n\r\n").into_bytes(),
                &[Some(414), Some(431), None],
            ),
            ("a long header", format!("{head}X: {long}\r\n\r\n").into_bytes(), &[Some(431), None]),
            (
                "a thousand headers",
                format!("{head}{numerous}\r\n").into_bytes(),
                &[Some(431), None],
            ),
            (
                "a header of bytes",
                [head.as_bytes(), b"X: \xff\xfe\0\r\n\r\n"].concat(),
                &[Some(400), None],
            ),
            ("an order of no JSON", post("connect"), &[Some(400)]),
            ("an unknown order", post(r#"{"stop":{}}"#), &[Some(400)]),
            ("an order of a wrong type", post(r#"{"locate":{"frame":"now"}}"#), &[Some(400)]),
            ("an order in a thousand brackets", post(&"[".repeat(10_000)), &[Some(400)]),
            ("a long order", post(&long), &[Some(413), None]),
            (
                "an order that ends too soon",
                cut(post(r#"{"roll":{"roll":true}}"#)),
                &[Some(400), Some(413), None],
            ),
            (
                "ports that are none",
                post(
                    &json!({ "connect": { "source": name, "destination": "\u{0}\n" } }).to_string(),
                ),
                &[Some(409)],
            ),
        ];
        for (what, bytes, expected) in cases {
            let status = answered(address, &bytes);
            assert!(expected.contains(&status), "{what}: {status:?}");
        }
        assert_eq!(get(address, "/").status, 200);
        assert_eq!(order(address, &json!({ "roll": { "roll": false } })).status, 200);
    });
}

fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 4);
    bytes
}

#[test]
fn browsers_that_go_away_in_the_middle_leave_nothing_behind() {
    with_sound(|_, address| {
        for number in 0..200 {
            let mut stream = asking_for_events(address);
            match number % 3 {
                0 => drop(stream),
                // In the middle of an event.
                1 => drop(stream.read(&mut [0; 100])),
                _ => drop(stream.shutdown(Shutdown::Both)),
            }
        }
        eventually("none is left", || (browsers(address) == 0.0).then_some(()));
    });
}

#[test]
fn a_silent_connection_is_closed() {
    let (_server, address) = served(&["--quantum", "4096"]);
    let mut silent = connect(address);
    let mut slow = connect(address);
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").expect("sent");
    for stream in [&mut silent, &mut slow] {
        // The connection is closed, with or without an answer; the stream's own timeout applies.
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        let is_over = ended.is_ok()
            || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(is_over, "still open");
    }
    assert_eq!(get(address, "/").status, 200);
}
