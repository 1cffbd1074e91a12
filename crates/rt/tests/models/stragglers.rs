//! Signals of the previous cycle arrive too late.

use loom::thread;

use crate::explore;
use crate::stage::{Chair, Client, Stage, edges, memory};

#[test]
fn a_signal_of_the_cycle_before_never_counts_in_the_next() {
    for (name, cycle, next) in [("any cycle", 7, 8), ("numbers wrap", u32::MAX, 0)] {
        explore(3, move || {
            let (client, two) = (Client::new(), edges(2));
            client.signals.arm(cycle, two);
            let straggler = {
                let client = client.clone();
                thread::spawn(move || {
                    for edge in 0..2 {
                        client.signals.signal(cycle, two, edge);
                    }
                })
            };
            client.signals.arm(next, two);
            assert!(!client.signals.signal(next, two, 1), "{name}: one is missing");
            assert!(!client.signals.ready(next, two), "{name}");
            straggler.join().expect("straggler");
            assert!(!client.signals.ready(next, two), "{name}");
            assert!(client.signals.signal(next, two, 0), "{name}");
            assert!(client.signals.ready(next, two), "{name}");
        });
    }
}

#[test]
fn a_follower_woken_by_a_straggler_waits_for_its_own_cycle() {
    explore(2, || {
        let (stage, follower, source) = (Stage::new(), Client::new(), Client::new());
        follower.assign(1, Some(1));
        let seats = [Chair::new(&follower, 1)];
        stage.begin(&seats, 1, 1, true);
        let process = {
            let (stage, follower, source) = (stage.clone(), follower.clone(), source.clone());
            thread::spawn(move || {
                let mut memory = memory();
                while stage.await_turn(&follower, &mut memory) != 2 {}
                assert_eq!(source.read(), 2, "the buffer of its own cycle");
            })
        };
        let straggler = {
            let (stage, follower) = (stage.clone(), follower.clone());
            thread::spawn(move || stage.signal(&follower, 1, 0, 1))
        };
        stage.begin(&seats, 2, 1, false);
        source.write(2);
        stage.signal(&follower, 1, 0, 2);
        stage.futex.let_time_pass();
        straggler.join().expect("straggler");
        process.join().expect("follower");
    });
}
