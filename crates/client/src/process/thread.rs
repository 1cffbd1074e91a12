//! The process thread: its start, its modes, its end.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::{io, ptr};

use super::runner::{Runner, lend};
use super::tables::TablesReceiver;
use crate::Error;
use crate::callbacks::{ProcessCallback, ThreadFunction};
use crate::joinable::Joinable;
use crate::locked::{locked, try_locked};
use crate::notification::Notice;
use crate::session::Core;

/// As much as programs know from other servers: their callbacks keep arrays there.
const STACK_BYTES: usize = 512 * 1024;
const PREFAULTED_BYTES: usize = 128 * 1024;
/// For the program's initialization, and for its last cycle.
const PATIENCE: Duration = Duration::from_secs(5);

/// The program's part.
pub(crate) enum Body {
    /// Called once in each cycle.
    Process(ProcessCallback),
    /// Runs the loop itself.
    Function(ThreadFunction),
    /// Nothing: the client is in cycles for its part in the transport.
    Transport,
}

/// What a process thread begins with.
pub(crate) struct Start {
    pub(crate) core: Arc<Core>,
    pub(crate) body: Body,
    pub(crate) tables: TablesReceiver,
    /// Tells this activation from others.
    pub(crate) activation: u32,
}

/// A running process thread.
#[derive(Debug)]
pub(crate) struct ProcessThread {
    thread: Joinable<()>,
    /// Set with Release and looked at with Acquire: a thread that leaves sees what was done before it was asked to. One that
    /// has looked just before is called again, see [`Joinable::join`].
    stop: Arc<AtomicBool>,
    /// The kernel's id.
    pub(crate) id: u32,
}

impl Body {
    /// Whether a process thread of an earlier activation is in the program's part still.
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
            return Err(Error::ProcessRuns);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = channel();
        let name = start.core.name.clone();
        let stop_of_thread = Arc::clone(&stop);
        let run = move || run(start, stop_of_thread, ready);
        // A signal handler of the program's would run within a cycle.
        let thread =
            Joinable::spawn_without_signals(&name, STACK_BYTES, run).map_err(Error::ProcessThread)?;
        match is_ready.recv_timeout(PATIENCE) {
            Ok(id) => Ok(Self { thread, stop, id }),
            Err(_) => {
                stop.store(true, Ordering::Release);
                Err(Error::ProcessThread(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Asks the thread to leave, and waits for it in bounded time.
    pub(crate) fn stop(self, core: &Core) {
        self.stop.store(true, Ordering::Release);
        self.thread.join(PATIENCE, || core.wake_process_thread());
    }
}

thread_local! {
    /// While the program initializes a process thread, on that: whose it is.
    static BEGINNING: Cell<*const Core> = const { Cell::new(ptr::null()) };
}

/// Whether the calling thread is a process thread of `core` that the program initializes: whoever started it waits for that,
/// and so it must not wait for whoever started it.
pub(crate) fn is_beginning(core: &Core) -> bool {
    ptr::eq(BEGINNING.get(), core)
}

/// Says that the thread has left by itself, however it did.
struct Leaving {
    core: Arc<Core>,
    stop: Arc<AtomicBool>,
    activation: u32,
}

impl Drop for Leaving {
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
    BEGINNING.set(&raw const *core);
    core.initialize_process_thread();
    BEGINNING.set(ptr::null());
    let runner = Runner::new(Arc::clone(&core), Arc::clone(&stop), tables);
    if core.link().is_realtime() {
        // As the link's pages: what a limit refuses is left as it is. Before the first touch, so that what is touched stays.
        let _ = sys::thread::lock_stack(PREFAULTED_BYTES);
    }
    sys::thread::prefault_stack(PREFAULTED_BYTES);
    runner.become_realtime();
    let _leaving = Leaving { core: Arc::clone(&core), stop, activation };
    // Nobody waits for it any more, if this fails: then `stop` is set.
    let _ = ready.send(sys::thread::thread_id());
    // The program's part is locked before the first cycle, and until the thread leaves it: no other begins meanwhile.
    match &body {
        Body::Process(process) => {
            let mut process = locked(process);
            runner.run(&mut *process);
        }
        Body::Transport => runner.run(&mut |_| 0),
        Body::Function(function) => lend(runner, || locked(function)()),
    }
}
