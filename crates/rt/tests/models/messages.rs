//! A program of libpulse and the front end that serves it, with two rings between them.

use std::sync::Arc;

use consort_rt::park::Park;
use consort_rt::shm::{MessageEnd, MessagePeer, MessageRings};
use consort_rt::sync::{AtomicU32, Ordering};
use loom::thread;

use crate::explore;
use crate::futex::Futex;

/// Words that the program sends: more than the ring of the models holds.
const SENT: u32 = 3;

#[test]
fn a_message_is_found_whenever_it_is_sent() {
    explore(3, || {
        // The eventfd is a futex: both wake who has looked before.
        let shared = Arc::new((MessageRings::default(), AtomicU32::new(0), Futex::new()));
        shared.0.describe();
        let front_end = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (rings, eventfd, futex) = &*shared;
                let (mut end, mut came) = (MessageEnd::default(), 0);
                while came < 2 {
                    let seen = eventfd.load(Ordering::Acquire);
                    if !rings.listen() {
                        futex.wait(eventfd, seen, None);
                        continue;
                    }
                    let mut room = [0; 4];
                    let taken = rings.take(&mut end, &mut room).expect("a count");
                    came += taken.bytes / 4;
                }
            })
        };
        let (rings, eventfd, futex) = &*shared;
        let mut program = MessagePeer::default();
        for word in 1..=2 {
            if program.send(rings, &[word]).1 {
                eventfd.fetch_add(1, Ordering::Release);
                futex.wake(eventfd, 1);
            }
        }
        front_end.join().expect("front end");
    });
}

#[test]
fn messages_are_read_as_they_were_sent() {
    explore(3, || {
        let rings = Arc::new(MessageRings::default());
        rings.describe();
        let front_end = {
            let rings = rings.clone();
            thread::spawn(move || {
                let (mut end, mut next) = (MessageEnd::default(), 1_u32);
                while next <= SENT {
                    let mut room = [0; 4];
                    if rings.take(&mut end, &mut room).expect("a count").bytes == 0 {
                        thread::yield_now();
                        continue;
                    }
                    assert_eq!(u32::from_ne_bytes(room), next);
                    next += 1;
                }
            })
        };
        let (mut program, mut next) = (MessagePeer::default(), 1);
        while next <= SENT {
            if program.send(&rings, &[next]).0 == 1 {
                next += 1;
            } else {
                thread::yield_now();
            }
        }
        front_end.join().expect("front end");
    });
}

#[test]
fn words_for_a_program_are_read_as_they_were_put() {
    explore(3, || {
        let rings = Arc::new(MessageRings::default());
        rings.describe();
        let program = {
            let rings = rings.clone();
            thread::spawn(move || {
                let (mut program, mut next) = (MessagePeer::default(), 1_u32);
                while next <= SENT {
                    let mut room = [0];
                    if program.receive(&rings, &mut room) == 0 {
                        thread::yield_now();
                        continue;
                    }
                    assert_eq!(room[0], next);
                    next += 1;
                }
            })
        };
        let (mut end, mut next) = (MessageEnd::default(), 1);
        while next <= SENT {
            if rings.put(&mut end, [next]).expect("a count") {
                next += 1;
            } else {
                thread::yield_now();
            }
        }
        program.join().expect("program");
    });
}
