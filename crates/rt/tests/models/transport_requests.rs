//! Threads of a client request changes of the transport, and the driver reads them.

use std::sync::Arc;

use consort_rt::shm::TransportRequests;
use consort_rt::transport::Position;
use loom::thread;

use crate::explore;

/// Returns a position with two words that show that they belong together.
fn position(frame: u32) -> Position {
    Position { frame, bar: frame.cast_signed(), ..Position::default() }
}

/// Returns the frame of the position that the driver reads, if any.
fn hear(requests: &TransportRequests) -> Option<u32> {
    let position = requests.take()?.position?;
    assert_eq!(position.frame.cast_signed(), position.bar, "whole");
    Some(position.frame)
}

#[test]
fn requests_of_two_threads_both_reach_the_driver() {
    explore(3, || {
        let requests = Arc::new(TransportRequests::default());
        let asking = [0, 1].map(|thread| {
            let requests = requests.clone();
            thread::spawn(move || match thread {
                0 => assert!(requests.request_position(&position(1))),
                _ => requests.request_roll(true),
            })
        });
        let first = requests.take();
        for thread in asking {
            thread.join().expect("a thread of the client");
        }
        let second = requests.take();
        let heard = [first, second].into_iter().flatten();
        let (positions, rolls): (Vec<_>, Vec<_>) =
            heard.map(|heard| (heard.position, heard.roll)).unzip();
        assert_eq!(positions.into_iter().flatten().collect::<Vec<_>>(), [position(1)], "once");
        assert_eq!(rolls.into_iter().flatten().collect::<Vec<_>>(), [true], "once");
    });
}

#[test]
fn the_driver_reads_whole_positions_in_order_up_to_the_last_one() {
    explore(3, || {
        let requests = Arc::new(TransportRequests::default());
        let client = {
            let requests = requests.clone();
            thread::spawn(move || {
                for frame in 1..=4 {
                    assert!(requests.request_position(&position(frame)), "no other thread writes");
                }
            })
        };
        let mut heard: Vec<u32> =
            [hear(&requests), hear(&requests)].into_iter().flatten().collect();
        client.join().expect("the client");
        heard.extend(hear(&requests));
        assert!(heard.is_sorted(), "never an older one after a newer: {heard:?}");
        assert_eq!(heard.last(), Some(&4));
        assert_eq!(requests.take(), None, "nothing is left");
    });
}
