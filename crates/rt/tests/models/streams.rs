//! A program and a device's thread exchange frames, wishes and times.

use std::sync::Arc;

use consort_rt::shm::{
    Acknowledgement, RingHeader, Schedule, StreamPage, WISHES, WishReader, Wishes, WrittenFrames,
};
use consort_rt::stream::Wish;
use consort_rt::sync::{AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use loom::thread;

use crate::explore;
use crate::futex::Futex;

/// Frames of a model's ring.
const CAPACITY: u32 = 2;

/// A playback ring with plain samples: loom reports each access that is not ordered after the one
/// before by the other side.
struct Playback {
    ring: RingHeader,
    page: StreamPage,
    samples: [UnsafeCell<u64>; CAPACITY as usize],
}

// SAFETY: what keeps the accesses to the samples apart is under test, and loom checks it.
unsafe impl Sync for Playback {}
// SAFETY: as above.
unsafe impl Send for Playback {}

impl Playback {
    fn sample(&self, position: u64) -> &UnsafeCell<u64> {
        &self.samples[(position % u64::from(CAPACITY)) as usize]
    }

    fn write(&self, position: u64) {
        // SAFETY: see `Sync`.
        self.sample(position).with_mut(|sample| unsafe { *sample = position });
    }

    fn read(&self, position: u64) -> u64 {
        // SAFETY: see `Sync`.
        self.sample(position).with(|sample| unsafe { *sample })
    }
}

#[test]
fn a_playback_ring_is_overwritten_only_after_it_was_read() {
    const FRAMES: u64 = CAPACITY as u64 + 1;
    explore(3, || {
        let stream = Arc::new(Playback {
            ring: RingHeader::default(),
            page: StreamPage::default(),
            samples: std::array::from_fn(|_| UnsafeCell::new(u64::MAX)),
        });
        let program = {
            let stream = stream.clone();
            thread::spawn(move || {
                for position in 0..FRAMES {
                    while position >= stream.page.lowest() + u64::from(CAPACITY) {
                        thread::yield_now();
                    }
                    stream.write(position);
                    stream.ring.publish(position + 1);
                }
            })
        };
        let (mut written, mut lowest) = (WrittenFrames::default(), 0);
        while lowest < FRAMES {
            let end = written.read(&stream.ring, lowest, CAPACITY);
            if end == lowest {
                thread::yield_now();
            }
            for position in lowest..end {
                assert_eq!(stream.read(position), position);
            }
            lowest = end;
            stream.page.set_lowest(lowest);
        }
        program.join().expect("program");
        assert_eq!(written.faults(), 0);
    });
}

#[test]
fn an_intact_copy_of_a_record_ring_has_no_newer_frames() {
    explore(3, || {
        let ring = Arc::new((RingHeader::default(), [0, 1].map(AtomicU32::new)));
        ring.0.publish(2);
        let server = {
            let ring = ring.clone();
            thread::spawn(move || {
                for position in 2..4_u32 {
                    ring.0.begin(u64::from(position) + 1);
                    ring.1[(position % CAPACITY) as usize].store(position, Ordering::Relaxed);
                    ring.0.publish(u64::from(position) + 1);
                }
            })
        };
        let newest = ring.0.written() - 1;
        for position in [newest - 1, newest] {
            let sample = &ring.1[(position % u64::from(CAPACITY)) as usize];
            let copy = u64::from(sample.load(Ordering::Relaxed));
            if ring.0.is_intact(position, CAPACITY) {
                assert_eq!(copy, position);
            }
        }
        server.join().expect("server");
    });
}

#[test]
fn wishes_are_read_once_in_order_and_acknowledged() {
    const COUNT: u64 = WISHES as u64 + 1;
    explore(3, || {
        let pages = Arc::new((Wishes::default(), StreamPage::default()));
        let program = {
            let pages = pages.clone();
            thread::spawn(move || {
                for number in 1..=COUNT {
                    while !pages.1.has_room_for(number) {
                        thread::yield_now();
                    }
                    pages.0.publish(number, Wish::Drain { end: number });
                }
            })
        };
        let mut reader = WishReader::default();
        for expected in 1..=COUNT {
            let (number, wish) = loop {
                match reader.next(&pages.0) {
                    Some(read) => break read,
                    None => thread::yield_now(),
                }
            };
            assert_eq!((number, wish), (expected, Some(Wish::Drain { end: expected })));
            pages.1.acknowledge(number, Some(10 * number));
        }
        program.join().expect("program");
        assert_eq!((reader.next(&pages.0), reader.lost()), (None, 0));
        assert_eq!(pages.1.acknowledgement(COUNT), Some(Acknowledgement::At(10 * COUNT)));
    });
}

#[test]
fn a_kicked_program_obeys_the_newest_schedule() {
    explore(3, || {
        let stream = Arc::new((StreamPage::default(), Futex::new()));
        let program = {
            let stream = stream.clone();
            thread::spawn(move || stream.0.await_due(4, 0, u64::MAX, &stream.1))
        };
        let device = {
            let stream = stream.clone();
            thread::spawn(move || {
                stream.0.set_schedule(Schedule { until: 4, ..Schedule::default() });
                stream.0.set_schedule(Schedule { until: 8, ..Schedule::default() });
            })
        };
        device.join().expect("device");
        stream.0.kick(&stream.1);
        stream.1.let_time_pass();
        let due = program.join().expect("program");
        assert_eq!(due.map(|due| due.until), Some(8));
    });
}

#[test]
fn a_kicked_program_finds_its_wish_acknowledged() {
    explore(3, || {
        let stream = Arc::new((StreamPage::default(), Futex::new()));
        let program = {
            let stream = stream.clone();
            thread::spawn(move || stream.0.await_acknowledgement(1, u64::MAX, &stream.1))
        };
        stream.0.acknowledge(1, Some(480));
        stream.0.kick(&stream.1);
        let outcome = program.join().expect("program");
        assert_eq!(outcome, Some(Acknowledgement::At(480)));
    });
}
