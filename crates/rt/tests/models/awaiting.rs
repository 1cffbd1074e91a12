//! The driver waits for clients to finish.

use std::sync::Arc;

use consort_rt::cycle::await_end;
use consort_rt::shm::SlabHeader;
use loom::thread;

use crate::explore;
use crate::stage::{Chair, Client, Stage};

/// Starts the thread of a client that finishes `cycle`.
fn finish(stage: &Arc<Stage>, client: &Arc<Client>, cycle: u32) -> thread::JoinHandle<()> {
    let (stage, client) = (stage.clone(), client.clone());
    thread::spawn(move || {
        client.write(cycle);
        client.own.finish(cycle, 0, 0);
        client.own.wake_driver(&stage.futex);
    })
}

#[test]
fn a_driver_that_awaits_clients_sleeps_exactly_until_they_finish() {
    explore(3, || {
        let (stage, clients) = (Stage::new(), [Client::new(), Client::new()]);
        let seats = clients.each_ref().map(|client| Chair::new(client, 0));
        let threads = clients.each_ref().map(|client| finish(&stage, client, 1));
        assert!(await_end(seats.iter(), 1, u64::MAX, &stage.futex), "all have finished");
        assert!(clients.iter().all(|client| client.read() == 1), "their buffers are heard");
        for thread in threads {
            thread.join().expect("client");
        }
    });
}

#[test]
fn a_client_that_has_not_run_is_awaited_however_long_the_server_has_run() {
    for cycle in [1, 1 << 31, (1 << 31) + 1, u32::MAX] {
        explore(3, move || {
            let (stage, client) = (Stage::new(), Client::new());
            let process = finish(&stage, &client, cycle);
            assert!(await_end([Chair::new(&client, 0)].iter(), cycle, u64::MAX, &stage.futex));
            assert_eq!(client.read(), cycle);
            process.join().expect("client");
        });
    }
}

#[test]
fn a_reader_that_sees_a_slab_finished_sees_its_samples() {
    explore(3, || {
        let slab = Arc::new((SlabHeader::default(), Client::new()));
        let owner = {
            let slab = slab.clone();
            thread::spawn(move || {
                slab.1.write(1);
                slab.0.finish(1);
            })
        };
        if slab.0.finished() == 1 {
            assert_eq!(slab.1.read(), 1);
        }
        owner.join().expect("owner");
    });
}
