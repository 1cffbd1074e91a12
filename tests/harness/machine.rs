//! CPU time that the machine takes from all programs, measured by threads that only the machine can
//! keep from running.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use sys::clock::{now_ns, sleep_until};
use sys::thread::CpuSet;

/// Above every thread of the server and of clients.
const PRIORITY: u32 = 80;
/// How often each thread wakes, at least.
const LONGEST_STEP_NS: u64 = 1_000_000;

/// A time in which a CPU was not available, `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When the CPU should have been available.
    pub from_ns: u64,
    /// When it was.
    pub until_ns: u64,
}

/// One thread on each CPU, until it is dropped.
#[derive(Debug)]
pub struct MachineWatch {
    stalls: Arc<Mutex<Vec<Stall>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Whether its threads have a higher priority than the clients'.
    pub is_realtime: bool,
}

impl MachineWatch {
    /// Notes stalls of `least_ns` and more.
    pub fn start(least_ns: u64) -> Self {
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
    pub fn stalls(&self) -> Vec<Stall> {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for MachineWatch {
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
    // Each thread sees of a stall what is left of it when it was to wake.
    let step_ns = (least_ns * 3 / 4).min(LONGEST_STEP_NS);
    let mut due_ns = now_ns() + step_ns;
    while !stop.load(Ordering::Relaxed) {
        sleep_until(due_ns);
        let woke_ns = now_ns();
        if woke_ns.saturating_sub(due_ns) >= least_ns {
            let stall = Stall { from_ns: due_ns, until_ns: woke_ns };
            stalls.lock().unwrap_or_else(PoisonError::into_inner).push(stall);
        }
        due_ns = woke_ns + step_ns;
    }
}

/// Names of programs with real-time threads that this process has not started: what they take looks
/// like the server's fault to these tests.
pub fn foreign_realtime() -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered =
        processes.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    numbered.filter_map(|entry| foreign_name(&entry.path())).collect()
}

fn foreign_name(process: &Path) -> Option<String> {
    const KERNEL: u32 = 2;
    let stat = Stat::read(process)?;
    let is_ours = [stat.parent, stat.id].contains(&std::process::id());
    if is_ours || [stat.parent, stat.id].contains(&KERNEL) {
        return None;
    }
    let mut tasks = fs::read_dir(process.join("task")).ok()?.flatten();
    let is_realtime =
        tasks.any(|task| Stat::read(&task.path()).is_some_and(|stat| stat.is_realtime));
    is_realtime.then_some(stat.name)
}

/// The state of a process or a thread, as in proc_pid_stat(5).
struct Stat {
    id: u32,
    name: String,
    parent: u32,
    is_realtime: bool,
}

impl Stat {
    fn read(directory: &Path) -> Option<Self> {
        let text = fs::read_to_string(directory.join("stat")).ok()?;
        let (id, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // Fields 4 and 40, counted from 1; this begins with the third.
        let parent = fields.get(1)?.parse().ok()?;
        let is_realtime = *fields.get(37)? != "0";
        Some(Self { id: id.parse().ok()?, name: name.to_owned(), parent, is_realtime })
    }
}
