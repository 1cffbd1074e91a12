//! What the threads of a client ask of the transport, and the driver hears.

use std::sync::Arc;

use consort_rt::shm::TransportRequests;
use consort_rt::transport::Position;
use loom::thread;

use crate::explore;

/// A position of which two words show that they belong together.
fn position(frame: u32) -> Position {
    Position { frame, bar: frame.cast_signed(), ..Position::default() }
}

/// The frame of the position that the driver hears, if it hears one.
fn hear(requests: &TransportRequests) -> Option<u32> {
    let position = requests.take()?.position?;
    assert_eq!(position.frame.cast_signed(), position.bar, "whole");
    Some(position.frame)
}

#[test]
fn what_two_threads_ask_is_heard_whoever_tells_last() {
    explore(3, || {
        let requests = Arc::new(TransportRequests::default());
        let asking = [0, 1].map(|thread| {
            let requests = requests.clone();
            thread::spawn(move || match thread {
                0 => assert!(requests.ask_position(&position(1))),
                _ => requests.ask_to_roll(true),
            })
        });
        let first = requests.take();
        for thread in asking {
            thread.join().expect("a thread of the client");
        }
        let second = requests.take();
        let heard = [first, second].into_iter().flatten();
        let (positions, rolls): (Vec<_>, Vec<_>) = heard.map(|heard| (heard.position, heard.roll)).unzip();
        assert_eq!(positions.into_iter().flatten().collect::<Vec<_>>(), [position(1)], "once");
        assert_eq!(rolls.into_iter().flatten().collect::<Vec<_>>(), [true], "once");
    });
}

#[test]
fn positions_are_heard_whole_and_in_their_order_and_the_last_one_always() {
    explore(3, || {
        let requests = Arc::new(TransportRequests::default());
        let client = {
            let requests = requests.clone();
            thread::spawn(move || {
                for frame in 1..=4 {
                    assert!(requests.ask_position(&position(frame)), "nobody else writes");
                }
            })
        };
        let mut heard: Vec<u32> = [hear(&requests), hear(&requests)].into_iter().flatten().collect();
        client.join().expect("the client");
        heard.extend(hear(&requests));
        assert!(heard.is_sorted(), "never an older one after a newer: {heard:?}");
        assert_eq!(heard.last(), Some(&4));
        assert_eq!(requests.take(), None, "nothing is left");
    });
}
