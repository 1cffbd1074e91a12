//! Sleeps like the kernel: compares the word and queues the sleeper under one lock.

use std::sync::Arc;

use consort_rt::park::{Park, WakeMask};
use consort_rt::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

/// All sleepers of a model. Time does not pass, so no deadline ends a sleep, and after a lost
/// wake-up a thread sleeps for ever, which loom reports as a deadlock.
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
    mask: WakeMask,
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
    fn wait_as(&self, mask: WakeMask, word: &AtomicU32, expected: u32, _deadline_ns: Option<u64>) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        // Relaxed: only the lock orders this load with a waker's change of the word, as futex(2)
        // promises.
        if word.load(Ordering::Relaxed) != expected {
            return;
        }
        let ticket = queue.tickets;
        queue.tickets += 1;
        let woken = Arc::new(Condvar::new());
        queue.sleepers.push(Sleeper {
            word: address(word),
            mask,
            ticket,
            woken: Arc::clone(&woken),
        });
        while queue.sleepers.iter().any(|sleeper| sleeper.ticket == ticket) {
            queue = woken.wait(queue).expect("no model panics in here");
        }
    }

    fn wake_only(&self, mask: WakeMask, word: &AtomicU32, count: u32) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        let is_meant = |sleeper: &Sleeper| {
            sleeper.word == address(word) && sleeper.mask.bits().get() & mask.bits().get() != 0
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
