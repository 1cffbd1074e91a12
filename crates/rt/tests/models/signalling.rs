//! Predecessors signal, and their follower runs.

use consort_rt::shm::CycleInfo;
use loom::thread;

use crate::explore;
use crate::stage::{Chair, Client, Stage, edges, memory};

#[test]
fn a_follower_wakes_when_its_last_predecessor_has_finished() {
    explore(2, || {
        let (stage, follower) = (Stage::new(), Client::new());
        let sources = [Client::new(), Client::new()];
        follower.assign(1, Some(2));
        let process = {
            let (stage, follower, sources) = (stage.clone(), follower.clone(), sources.clone());
            thread::spawn(move || {
                assert_eq!(stage.await_turn(&follower, &mut memory()), 1);
                assert!(sources.iter().all(|source| source.read() == 1), "both buffers are heard");
            })
        };
        stage.begin(&[Chair::new(&follower, 2)], 1, 1, true);
        let second = {
            let (stage, follower, source) = (stage.clone(), follower.clone(), sources[1].clone());
            thread::spawn(move || {
                source.write(1);
                stage.signal(&follower, 2, 1, 1);
            })
        };
        sources[0].write(1);
        stage.signal(&follower, 2, 0, 1);
        stage.futex.let_time_pass();
        second.join().expect("second predecessor");
        process.join().expect("follower");
    });
}

#[test]
fn predecessors_counted_in_different_words_are_all_awaited() {
    explore(3, || {
        let page = Client::new();
        let sources = [Client::new(), Client::new(), Client::new()];
        let three = edges(3);
        page.signals.arm(1, three);
        sources[2].write(1);
        assert!(!page.signals.signal(1, three, 2));
        let second = {
            let (page, source) = (page.clone(), sources[1].clone());
            thread::spawn(move || {
                source.write(1);
                page.signals.signal(1, three, 1)
            })
        };
        let reader = {
            let (page, sources) = (page.clone(), sources.clone());
            thread::spawn(move || {
                if page.signals.ready(1, three) {
                    assert!(
                        sources.iter().all(|source| source.read() == 1),
                        "all buffers are heard"
                    );
                }
            })
        };
        sources[0].write(1);
        let last = page.signals.signal(1, three, 0);
        assert!(
            last != second.join().expect("predecessor"),
            "one of them makes the follower ready"
        );
        reader.join().expect("reader");
        assert!(page.signals.ready(1, three));
    });
}

#[test]
fn a_chain_runs_from_the_drivers_release_on_without_the_driver() {
    explore(2, || {
        let (stage, first, follower) = (Stage::new(), Client::new(), Client::new());
        first.assign(1, Some(0));
        follower.assign(1, Some(1));
        let source = {
            let (stage, first, follower) = (stage.clone(), first.clone(), follower.clone());
            thread::spawn(move || {
                assert_eq!(stage.await_turn(&first, &mut memory()), 1);
                first.write(1);
                stage.signal(&follower, 1, 0, 1);
            })
        };
        let process = {
            let (stage, first, follower) = (stage.clone(), first.clone(), follower.clone());
            thread::spawn(move || {
                assert_eq!(stage.await_turn(&follower, &mut memory()), 1);
                assert_eq!(first.read(), 1, "the buffer is heard");
            })
        };
        stage.begin(&[Chair::new(&first, 0).before(1, 0), Chair::new(&follower, 1)], 1, 1, true);
        stage.futex.let_time_pass();
        source.join().expect("first");
        process.join().expect("follower");
    });
}

#[test]
fn a_released_cycle_publishes_all_that_the_driver_did_before() {
    explore(3, || {
        let (stage, driver) = (Stage::new(), Client::new());
        let client = {
            let (stage, driver) = (stage.clone(), driver.clone());
            thread::spawn(move || {
                if stage.engine.cycle() == 1 {
                    assert_eq!(driver.read(), 1, "captured samples");
                    assert_eq!(stage.engine.info().map(|info| info.cycle), Some(1));
                }
            })
        };
        stage.engine.publish(CycleInfo { cycle: 1, ..CycleInfo::default() });
        driver.write(1);
        stage.engine.release(1);
        client.join().expect("client");
    });
}
