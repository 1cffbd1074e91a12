//! Sleeps like the kernel: compares the word and queues the sleeper under one lock.

use std::sync::Arc;

use consort_rt::park::Park;
use consort_rt::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

/// All sleepers of a model. Time does not pass, so no deadline ends a sleep, and after a lost
/// wake-up a thread sleeps forever, which loom reports as a deadlock. The exceptions are sleepers
/// that were [stolen](Futex::steal), and brief sleeps: these end with the next wake-up of any
/// thread, and are no sleeps once [time passes](Futex::let_time_pass).
#[derive(Debug)]
pub(crate) struct Futex {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    tickets: usize,
    time_passes: bool,
    sleepers: Vec<Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    /// Address of the word slept on.
    word: usize,
    has_deadline: bool,
    ticket: usize,
    woken: Arc<Condvar>,
}

impl Futex {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(Queue::default()) }
    }

    /// Ends all brief sleeps. The driver and all predecessors have done everything by now.
    pub(crate) fn let_time_pass(&self) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        queue.time_passes = true;
        queue.end_brief_sleeps();
    }

    /// Moves all sleepers on a word to another, which no thread wakes (`FUTEX_REQUEUE`). Those with
    /// a deadline come back at that.
    pub(crate) fn steal(&self, word: &AtomicU32) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        for sleeper in &mut queue.sleepers {
            if sleeper.word == address(word) {
                sleeper.word = NOWHERE;
            }
        }
        let comes_back = |sleeper: &Sleeper| sleeper.word == NOWHERE && sleeper.has_deadline;
        while let Some(stolen) = queue.sleepers.iter().position(comes_back) {
            queue.sleepers.remove(stolen).woken.notify_one();
        }
    }
}

/// No word's address.
const NOWHERE: usize = 0;
/// Stands for the word of a brief sleep.
const BRIEFLY: usize = 1;

impl Queue {
    fn add(&mut self, word: usize, has_deadline: bool) -> (usize, Arc<Condvar>) {
        let (ticket, woken) = (self.tickets, Arc::new(Condvar::new()));
        self.tickets += 1;
        self.sleepers.push(Sleeper { word, has_deadline, ticket, woken: Arc::clone(&woken) });
        (ticket, woken)
    }

    fn has(&self, ticket: usize) -> bool {
        self.sleepers.iter().any(|sleeper| sleeper.ticket == ticket)
    }

    fn end_brief_sleeps(&mut self) {
        let is_brief = |sleeper: &Sleeper| sleeper.word == BRIEFLY;
        while let Some(brief) = self.sleepers.iter().position(is_brief) {
            self.sleepers.remove(brief).woken.notify_one();
        }
    }
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

impl Park for Futex {
    fn wait(&self, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        // Relaxed: only the lock orders this load with a waker's change of the word, as futex(2)
        // promises.
        if word.load(Ordering::Relaxed) != expected {
            return;
        }
        let (ticket, woken) = queue.add(address(word), deadline_ns.is_some());
        while queue.has(ticket) {
            queue = woken.wait(queue).expect("no model panics in here");
        }
    }

    fn wait_briefly(&self, _word: &AtomicU32, _expected: u32, _until_ns: u64) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        if queue.time_passes {
            drop(queue);
            return loom::thread::yield_now();
        }
        let (ticket, woken) = queue.add(BRIEFLY, true);
        while queue.has(ticket) {
            queue = woken.wait(queue).expect("no model panics in here");
        }
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        let mut queue = self.queue.lock().expect("no model panics in here");
        queue.end_brief_sleeps();
        for _ in 0..count {
            let asleep = |sleeper: &Sleeper| sleeper.word == address(word);
            let Some(first) = queue.sleepers.iter().position(asleep) else { return };
            queue.sleepers.remove(first).woken.notify_one();
        }
    }

    fn now_ns(&self) -> u64 {
        0
    }
}
