//! Sleeping as the kernel does it: the word is compared, and the sleeper queued, under one lock.

use std::sync::Arc;

use consort_rt::park::{Park, Sleepers};
use consort_rt::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

/// All sleepers of a model. Time stands still: no deadline ever ends a sleep, so that a lost wake-up
/// leaves the model with threads that sleep for ever, which loom reports as a deadlock.
#[derive(Debug)]
pub(crate) struct Futex {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    tickets: usize,
    sleepers: Vec<Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    /// Address of the word slept on.
    word: usize,
    sleepers: Sleepers,
    ticket: usize,
    woken: Arc<Condvar>,
}

impl Futex {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(Queue::default()) }
    }
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

impl Park for Futex {
    fn wait_as(&self, sleepers: Sleepers, word: &AtomicU32, expected: u32, _deadline_ns: Option<u64>) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        // Relaxed: only the lock orders this look with a waker's change of the word, as futex(2) promises.
        if word.load(Ordering::Relaxed) != expected {
            return;
        }
        let ticket = queue.tickets;
        queue.tickets += 1;
        let woken = Arc::new(Condvar::new());
        queue.sleepers.push(Sleeper { word: address(word), sleepers, ticket, woken: Arc::clone(&woken) });
        while queue.sleepers.iter().any(|sleeper| sleeper.ticket == ticket) {
            queue = woken.wait(queue).expect("no model panics in here");
        }
    }

    fn wake_only(&self, sleepers: Sleepers, word: &AtomicU32, count: u32) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        let is_meant = |sleeper: &Sleeper| {
            sleeper.word == address(word) && sleeper.sleepers.bits().get() & sleepers.bits().get() != 0
        };
        for _ in 0..count {
            let Some(first) = queue.sleepers.iter().position(is_meant) else { return };
            queue.sleepers.remove(first).woken.notify_one();
        }
    }

    fn now_ns(&self) -> u64 {
        0
    }
}
