//! The threads that wake clients on other CPUs in the driver's place: see [`Rouser`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rt::park::Sleepers;
use rt::rouser::Rouser;
use sys::futex::Futex;
use sys::thread::CpuSet;

use crate::cycle_thread::CycleShared;

/// So many clients that wait for the driver alone, on one CPU that is not its own, and more, are woken by a thread there. One or
/// two run sooner if the driver wakes them itself.
pub const ROUSED_FROM: usize = 3;

const STACK_BYTES: usize = 128 * 1024;
const PREFAULTED_BYTES: usize = 16 * 1024;
/// For a thread to be where it is to be: nothing else is answered meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);

/// A server's rousers, each made when a plan wants the first of its CPU. Control thread.
#[derive(Debug, Default)]
pub struct Rousers {
    /// `None`: the kernel has refused it.
    by_cpu: HashMap<u32, Option<Running>>,
}

#[derive(Debug)]
struct Running {
    rouser: Arc<Rouser>,
    thread: JoinHandle<()>,
}

impl Rousers {
    /// The rouser of a CPU, if it has one.
    pub fn on(&self, cpu: u32) -> Option<&Arc<Rouser>> {
        self.by_cpu.get(&cpu)?.as_ref().map(|running| &running.rouser)
    }

    /// Makes that of `cpu`, with the driver's priority; false if the kernel has refused it, now or before.
    pub fn prepare(&mut self, cpu: u32, priority: u32, shared: &Arc<CycleShared>) -> bool {
        self.by_cpu.entry(cpu).or_insert_with(|| start(cpu, priority, shared)).is_some()
    }
}

/// Ends the threads: when the driver thread has ended, which calls them.
impl Drop for Rousers {
    fn drop(&mut self) {
        for Running { rouser, thread } in std::mem::take(&mut self.by_cpu).into_values().flatten() {
            rouser.end(&Futex);
            // Fails if it has panicked, which it has said.
            let _ = thread.join();
        }
    }
}

fn start(cpu: u32, priority: u32, shared: &Arc<CycleShared>) -> Option<Running> {
    let rouser = Arc::new(Rouser::default());
    let (ready, is_ready) = channel();
    let (its, shared) = (Arc::clone(&rouser), Arc::clone(shared));
    let body = move || run(cpu, priority, &its, &shared, ready);
    let thread = sys::thread::spawn_without_signals("consort-rouser", STACK_BYTES, body).ok()?;
    if is_ready.recv_timeout(PATIENCE).is_ok() {
        return Some(Running { rouser, thread });
    }
    rouser.end(&Futex);
    None
}

/// Says that it is `ready` only if it is real-time and on its CPU: clients are not to wait for anything less.
fn run(cpu: u32, priority: u32, rouser: &Rouser, shared: &CycleShared, ready: Sender<()>) {
    // First, so that it need not wait there for those who are real-time.
    if sys::thread::set_fifo(0, priority).is_err() {
        return;
    }
    let mut only = CpuSet::new();
    if !only.insert(cpu as usize) || sys::thread::set_affinity(&only).is_err() {
        return;
    }
    sys::thread::prefault_stack(PREFAULTED_BYTES);
    let _ = ready.send(());
    drop(ready);
    sys::cycle_guard::enter();
    let (sleepers, mut served) = (Sleepers::on(Some(cpu)), 0);
    while rouser.serve(&mut served, &shared.engine, sleepers, &Futex) {}
    sys::cycle_guard::leave();
}
