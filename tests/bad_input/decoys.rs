//! A client that names one thread of its program and keeps a CPU with another.

use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use harness::{eventually, not_run};
use sys::thread::{Scheduling, scheduling, set_fifo, thread_id};

use crate::wire::{ByHand, server};

/// A thread that does not know that it was demoted ends after this.
const LONGEST: Duration = Duration::from_secs(60);

#[test]
fn a_decoy_keeps_no_thread_from_losing_its_priority() {
    let server = server();
    let (say, hear) = channel();
    let (end, ends) = channel::<()>();
    let hog = std::thread::spawn(move || {
        let begin = Instant::now();
        let is_permitted = set_fifo(0, 1).is_ok();
        say.send(is_permitted.then(thread_id)).expect("the test waits");
        let goes_on = || ends.try_recv() != Err(TryRecvError::Disconnected);
        while is_permitted && goes_on() && begin.elapsed() < LONGEST {}
    });
    let Some(hog_id) = hear.recv().expect("it begins") else {
        return not_run("no real-time priority here");
    };
    let is_hogging = || scheduling(hog_id).ok() == Some(Scheduling::Fifo(1));
    let mut client = ByHand::open(&server, "client");
    assert!(is_hogging());
    // The thread of this test runs no cycle.
    client.activate_as(Some(thread_id()), false);
    eventually("it is suspended", || {
        server.client("client").is_some_and(|client| client.bypassed).then_some(())
    });
    eventually("it keeps no CPU from others", || (!is_hogging()).then_some(()));
    // What the server has taken, it gives back: a program does not know about it.
    client.activate_as(None, false);
    eventually("it has its priority back", || is_hogging().then_some(()));
    drop(end);
    hog.join().expect("it ends");
}
