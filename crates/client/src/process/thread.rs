//! The process thread: start, modes, end.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::{io, ptr};

use super::runner::{Runner, run_own_loop};
use super::tables::TablesReceiver;
use crate::Error;
use crate::callbacks::{ProcessCallback, ThreadFunction};
use crate::joinable_thread::JoinableThread;
use crate::locked::{locked, try_locked};
use crate::notice_queue::Notice;
use crate::session::Core;

/// Programs keep arrays on this stack; other servers give them as much.
const STACK_BYTES: usize = 512 * 1024;
const PREFAULTED_BYTES: usize = 128 * 1024;
/// Time limit for the program's thread initialization, and for its last cycle.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the process thread runs.
pub(crate) enum Body {
    /// A callback, once in each cycle.
    Process(ProcessCallback),
    /// The program's own loop.
    Function(ThreadFunction),
    /// No code of the program except its transport callbacks.
    Transport,
}

/// Arguments of a new process thread.
pub(crate) struct Start {
    pub(crate) core: Arc<Core>,
    pub(crate) body: Body,
    pub(crate) tables: TablesReceiver,
    /// Number of this activation.
    pub(crate) activation: u32,
}

/// A running process thread.
#[derive(Debug)]
pub(crate) struct ProcessThread {
    thread: JoinableThread<()>,
    /// Stored with Release and loaded with Acquire: a thread that ends sees what was done before it
    /// was asked to. A thread that has loaded it just before is woken again, see
    /// [`JoinableThread::join`].
    stop: Arc<AtomicBool>,
    /// The kernel's thread id.
    pub(crate) id: u32,
}

impl Body {
    /// Returns whether the process thread of an earlier activation is still in the program's code.
    fn is_running(&self) -> bool {
        match self {
            Self::Process(process) => try_locked(process).is_none(),
            Self::Function(function) => try_locked(function).is_none(),
            Self::Transport => false,
        }
    }
}

impl ProcessThread {
    /// Starts the thread and waits, in bounded time, until it is ready for cycles.
    pub(crate) fn start(start: Start) -> Result<Self, Error> {
        if start.body.is_running() {
            return Err(Error::ProcessCallbackRunning);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = channel();
        let name = start.core.name.clone();
        let stop_of_thread = Arc::clone(&stop);
        let run = move || run(start, stop_of_thread, ready);
        // Without signals: a signal handler of the program would run within a cycle.
        let thread = JoinableThread::spawn_without_signals(&name, STACK_BYTES, run)
            .map_err(Error::ProcessThread)?;
        match is_ready.recv_timeout(PATIENCE) {
            Ok(id) => Ok(Self { thread, stop, id }),
            Err(_) => {
                stop.store(true, Ordering::Release);
                Err(Error::ProcessThread(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Asks the thread to end and waits for it in bounded time.
    pub(crate) fn stop(self, core: &Core) {
        self.stop.store(true, Ordering::Release);
        self.thread.join(PATIENCE, || core.wake_process_thread());
    }
}

thread_local! {
    /// The client whose process thread this is, while the program's thread initialization runs on
    /// it.
    static INITIALIZING: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Returns whether the calling thread is a process thread of `core` in the program's thread
/// initialization. The activating thread waits for this thread, so this thread must not wait for
/// the activation.
pub(crate) fn is_initializing(core: &Core) -> bool {
    ptr::eq(INITIALIZING.get(), core)
}

/// Reports on drop that the thread has ended by itself, possibly by a panic.
struct ExitNotice {
    core: Arc<Core>,
    stop: Arc<AtomicBool>,
    activation: u32,
}

impl Drop for ExitNotice {
    fn drop(&mut self) {
        if !self.stop.load(Ordering::Acquire) || std::thread::panicking() {
            self.core.notify(Notice::ProcessEnded { activation: self.activation });
        }
    }
}

fn run(start: Start, stop: Arc<AtomicBool>, ready: Sender<u32>) {
    let Start { core, body, tables, activation } = start;
    sys::thread::flush_denormals_to_zero();
    dsp::detect_processor();
    sys::cycle_guard::look_for_checker();
    INITIALIZING.set(&raw const *core);
    core.initialize_process_thread();
    INITIALIZING.set(ptr::null());
    let runner = Runner::new(Arc::clone(&core), Arc::clone(&stop), tables);
    if core.memory().is_realtime() {
        // Like the server's pages, the stack stays unlocked if a limit refuses. Before the first
        // touch, so that touched pages stay.
        let _ = sys::thread::lock_stack(PREFAULTED_BYTES);
    }
    sys::thread::prefault_stack(PREFAULTED_BYTES);
    runner.become_realtime();
    let _leaving = ExitNotice { core: Arc::clone(&core), stop, activation };
    // Fails if the starting thread has given up waiting; it has then set `stop`.
    let _ = ready.send(sys::thread::thread_id());
    // The program's code is locked from before the first cycle until the thread ends, so that no
    // other process thread runs it meanwhile.
    match &body {
        Body::Process(process) => {
            let mut process = locked(process);
            runner.run(&mut *process);
        }
        Body::Transport => runner.run(&mut |_| 0),
        Body::Function(function) => run_own_loop(runner, || locked(function)()),
    }
}
