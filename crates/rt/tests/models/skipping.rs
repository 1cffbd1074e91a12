//! The driver signals on behalf of a late client, while the client may do so itself.

use consort_rt::cycle::signal_for;
use consort_rt::sync::{AtomicU32, Ordering};
use loom::thread;
use std::sync::Arc;

use crate::explore;
use crate::stage::{Chair, Client, Stage, edges, memory};

#[test]
fn a_signal_given_twice_makes_the_follower_run_once() {
    explore(2, || {
        let (stage, late, follower) = (Stage::new(), Client::new(), Client::new());
        follower.assign(1, Some(1));
        let seats = [Chair::new(&late, 0).before(1, 0), Chair::new(&follower, 1)];
        let stop = Arc::new(AtomicU32::new(0));
        stage.begin(&seats, 1, 1, true);
        let process = {
            let (stage, follower, stop) = (stage.clone(), follower.clone(), stop.clone());
            thread::spawn(move || {
                let (mut memory, mut runs) = (memory(), 0);
                while stop.load(Ordering::Relaxed) == 0 {
                    if let Some(cycle) = stage.poll(&follower, &mut memory) {
                        runs += 1;
                        follower.own.finish(cycle, 0, 0);
                        follower.own.wake_driver(&stage.futex);
                    }
                }
                assert_eq!(runs, 1);
            })
        };
        let client = {
            let (stage, follower) = (stage.clone(), follower.clone());
            thread::spawn(move || stage.signal(&follower, 1, 0, 1))
        };
        signal_for(&seats, 0, 1, &stage.futex);
        while !follower.own.await_finish(1, u64::MAX, 1, &stage.futex) {}
        client.join().expect("client");
        stop.store(1, Ordering::Relaxed);
        follower.signals.wake_up(&stage.futex);
        stage.futex.let_time_pass();
        process.join().expect("follower");
    });
}

/// A name, the follower's number of edges, the skipped client's edge, and the edges signaled
/// before.
const PLACES: [(&str, u32, u32, &[u32]); 3] = [
    ("the only word", 2, 1, &[0]),
    ("a lower word of two", 3, 1, &[2, 0]),
    ("a lower word of its own", 3, 2, &[1, 0]),
];

/// The skipped client's thread may be stopped forever at any point, so the driver's signal must be
/// enough.
#[test]
fn a_signal_for_a_stopped_client_wakes_its_follower() {
    for (name, count, edge, others) in PLACES {
        explore(3, move || {
            let (stage, late, follower) = (Stage::new(), Client::new(), Client::new());
            let seats = [Chair::new(&late, 0).before(1, edge), Chair::new(&follower, count)];
            stage.begin(&seats, 1, 1, true);
            for other in others {
                stage.signal(&follower, count, *other, 1);
            }
            let before = follower.signals.wake_count();
            let client = {
                let (stage, follower) = (stage.clone(), follower.clone());
                thread::spawn(move || stage.signal(&follower, count, edge, 1))
            };
            signal_for(&seats, 0, 1, &stage.futex);
            assert!(follower.signals.ready(1, edges(count)), "{name}: ready");
            assert_ne!(follower.signals.wake_count(), before, "{name}: woken");
            client.join().expect("client");
        });
    }
}

#[test]
fn a_signal_for_a_client_publishes_what_other_predecessors_wrote() {
    for (name, count, edge, others) in PLACES {
        explore(2, move || {
            let (stage, late, follower, source) =
                (Stage::new(), Client::new(), Client::new(), Client::new());
            let seats = [Chair::new(&late, 0).before(1, edge), Chair::new(&follower, count)];
            stage.begin(&seats, 1, 1, true);
            let (early, last) = (&others[..others.len() - 1], others[others.len() - 1]);
            for other in early {
                stage.signal(&follower, count, *other, 1);
            }
            let driver = {
                let (stage, seats) = (stage.clone(), seats.clone());
                thread::spawn(move || signal_for(&seats, 0, 1, &stage.futex))
            };
            let reader = {
                let (follower, source) = (follower.clone(), source.clone());
                thread::spawn(move || {
                    if follower.signals.ready(1, edges(count)) {
                        assert_eq!(source.read(), 1, "{name}");
                    }
                })
            };
            source.write(1);
            stage.signal(&follower, count, last, 1);
            stage.signal(&follower, count, edge, 1);
            driver.join().expect("driver");
            reader.join().expect("reader");
            assert!(follower.signals.ready(1, edges(count)), "{name}");
        });
    }
}
