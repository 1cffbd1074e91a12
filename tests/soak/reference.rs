//! What the machine takes from everybody: seen by threads that only the machine can keep from running.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use sys::clock::{now_ns, sleep_until};
use sys::thread::CpuSet;

/// Above every thread of the server and of clients.
const PRIORITY: u32 = 80;
/// How often each thread looks.
const STEP_NS: u64 = 1_000_000;

/// A time in which a CPU was not to be had, `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
}

/// One thread on each CPU, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reference {
    stalls: Arc<Mutex<Vec<Stall>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Its threads have the priority that the clients' have, and more.
    pub(crate) is_realtime: bool,
}

impl Reference {
    /// Notes stalls of `least_ns` and more.
    pub(crate) fn start(least_ns: u64) -> Self {
        let (stalls, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let cpus = sys::thread::affinity().expect("the CPUs of this process");
        let is_realtime = std::thread::spawn(|| sys::thread::set_fifo(0, PRIORITY).is_ok());
        let is_realtime = is_realtime.join().expect("it was tried");
        let watch = |cpu| {
            let (stalls, stop) = (Arc::clone(&stalls), Arc::clone(&stop));
            std::thread::spawn(move || watch(cpu, least_ns, &stalls, &stop))
        };
        let threads = cpus.iter().map(watch).collect();
        Self { stalls, stop, threads, is_realtime }
    }

    /// The stalls so far, oldest first on each CPU.
    pub(crate) fn stalls(&self) -> Vec<Stall> {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn watch(cpu: usize, least_ns: u64, stalls: &Mutex<Vec<Stall>>, stop: &AtomicBool) {
    let mut only = CpuSet::new();
    only.insert(cpu);
    // Where it may not be pinned or real-time, it sees less: the summary says so.
    let _ = sys::thread::set_affinity(&only);
    let _ = sys::thread::set_fifo(0, PRIORITY);
    let mut due_ns = now_ns() + STEP_NS;
    while !stop.load(Ordering::Relaxed) {
        sleep_until(due_ns);
        let woke_ns = now_ns();
        if woke_ns.saturating_sub(due_ns) >= least_ns {
            let stall = Stall { from_ns: due_ns, until_ns: woke_ns };
            stalls.lock().unwrap_or_else(PoisonError::into_inner).push(stall);
        }
        due_ns = woke_ns + STEP_NS;
    }
}
