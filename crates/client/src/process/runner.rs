//! The process thread's loop in two halves: before and after the program's callback.
//!
//! Rare work is kept out of the two functions (`cold`, `inline(never)`), so that the common path
//! lies on few pages: the kernel runs other processes between two cycles, and each page then costs
//! a TLB miss.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rt::midi::Cursor;
use rt::park::Park;
use rt::shm::{ASSIGNMENT_WORDS, CycleInfo, SignalPage};
use rt::turn::{Pages, SignalPages, Turn, TurnState, signal_follower};
use sys::futex::Futex;
use sys::thread::{CpuSet, OwnCpu, SchedulingError};

use super::CycleScope;
use super::inputs::{CycleInputs, merge_cursors};
use super::priority_boost::PriorityBoost;
use super::tables::TablesReceiver;
use super::transport::TransportPart;
use crate::session::{Core, ServerMemory};

/// Limit of a sleep, after which the thread checks whether it must stop or the server is gone.
const POLL_NS: u64 = 1_000_000_000;

/// The process thread's state from cycle to cycle.
#[derive(Debug)]
pub(crate) struct Runner {
    core: Arc<Core>,
    /// Index of the server whose cycles it runs.
    server: u32,
    stop: Arc<AtomicBool>,
    /// The program has ended its own loop.
    ended: bool,
    turn: TurnState<Box<[u32]>>,
    /// The first plan of the assignments that the thread applied last.
    applied_plan: u64,
    spurious: u32,
    /// How long a sleep lasts that a predecessor can turn into one for ever, ns.
    patience_ns: Option<u64>,
    tables: TablesReceiver,
    /// Space for merging events.
    cursors: Vec<Cursor>,
    /// CPUs on which the thread may run without an assignment.
    original_cpus: Option<CpuSet>,
    /// Isolated CPUs, on which threads run only if assigned there.
    isolated_cpus: CpuSet,
    /// CPU that the thread is pinned to, if any.
    cpu: Option<u32>,
    own_cpu: OwnCpu,
    transport: TransportPart,
    /// The server is freewheeling, so the thread is not real-time.
    freewheels: bool,
    boost: PriorityBoost,
    current: CurrentCycle,
}

/// The cycle that the program is in. It is also reachable through a thread-local variable, which
/// takes five pages to read; no cycle should touch them.
type CurrentCycle = Rc<Cell<Option<CycleInfo>>>;

impl Runner {
    /// Prepares the calling thread. Allocates all that cycles need.
    pub(crate) fn new(core: Arc<Core>, stop: Arc<AtomicBool>, tables: TablesReceiver) -> Self {
        // An earlier activation may have left the opposite.
        core.memory().own.note_sync_not_needed();
        // Allocated before the words, which cover several pages and of which a cycle needs only the
        // first.
        let current = CurrentCycle::default();
        let words = vec![std::hint::black_box(0); ASSIGNMENT_WORDS].into_boxed_slice();
        CURRENT.set(Some(Rc::clone(&current)));
        let server = core.memories.newest();
        Self {
            server,
            patience_ns: patience_ns(core.memories.get(server)),
            core,
            stop,
            ended: false,
            turn: TurnState::new(words),
            applied_plan: 0,
            spurious: 0,
            tables,
            cursors: merge_cursors(),
            original_cpus: sys::thread::note_usual_affinity().ok(),
            isolated_cpus: sys::topology::isolated(),
            cpu: None,
            own_cpu: OwnCpu::of_this_thread(),
            transport: TransportPart::default(),
            freewheels: false,
            boost: PriorityBoost::new(Futex.now_ns()),
            current,
        }
    }

    /// Runs cycles until the thread must stop or `process` returns a status other than 0.
    ///
    /// Not inlined, so that it is placed next to the two halves: this crate is compiled as one
    /// unit.
    #[inline(never)]
    pub(super) fn run(mut self, process: &mut dyn FnMut(&CycleScope<'_>) -> i32) {
        while let Some(info) = self.wait() {
            let status =
                if self.core.is_muted() { 0 } else { process(&CycleScope::new(&self.core, info)) };
            self.finish(status);
            if status != 0 {
                break;
            }
        }
    }

    /// Sleeps until it is the client's turn, then makes its inputs. Returns `None` if the thread
    /// must end. Thread: cycle.
    pub(crate) fn wait(&mut self) -> Option<CycleInfo> {
        let info = self.await_turn()?;
        sys::cycle_guard::enter();
        if self.memory().engine.freewheels() != self.freewheels {
            self.follow_freewheel();
        }
        if self.turn.valid_from != self.applied_plan {
            self.apply_assignments();
        }
        self.memory().own.begin(info.cycle, Futex.now_ns());
        let heard = CycleInputs {
            assignment: self.turn.assignment(),
            ports: &self.core.ports,
            tables: self.tables.current(),
            own: &self.core.own_slabs,
            cycle: info.cycle,
            frames: info.quantum as usize,
        };
        heard.prepare(&mut self.cursors);
        heard.copy_to_tied_outputs(&mut self.cursors);
        self.current.set(Some(info));
        sys::cycle_guard::leave();
        if !self.core.is_muted() {
            self.transport.call_sync(&self.tables.current().transport, &self.core, info);
        }
        Some(info)
    }

    /// Gives the calling process thread its real-time priority. Not within a cycle.
    pub(super) fn become_realtime(&self) {
        if self.memory().engine.flags().gives_priorities {
            return;
        }
        if let Err(error) = self.take_priority() {
            crate::log::warn(&format!(
                "client '{}' runs without real-time priority and may be late: {error}",
                self.core.name
            ));
        }
    }

    /// Takes the boosted priority or, if a limit refuses it, the announced one. Thread: cycle.
    fn take_priority(&self) -> Result<(), SchedulingError> {
        let engine = &self.memory().engine;
        let Some((told, highest)) = engine.client_priority().zip(engine.highest_program_priority())
        else {
            // The server is not real-time.
            return Ok(());
        };
        let earned = self.boost.priority(told, highest);
        sys::thread::set_fifo(0, earned).or_else(|_| sys::thread::set_fifo(0, told))
    }

    /// Leaves real-time scheduling while freewheeling, which leaves no time to others, and takes it
    /// again afterwards. Thread: cycle.
    #[cold]
    fn follow_freewheel(&mut self) {
        self.freewheels = self.memory().engine.freewheels();
        // Failures are ignored: without the permission, the thread was not real-time before either.
        let _ = if !self.freewheels {
            self.take_priority()
        } else if self.memory().engine.client_priority().is_some() {
            sys::thread::set_other(0)
        } else {
            Ok(())
        };
    }

    fn memory(&self) -> &ServerMemory {
        self.core.memories.get(self.server)
    }

    fn await_turn(&mut self) -> Option<CycleInfo> {
        loop {
            if self.ended || self.stop.load(Ordering::Acquire) || self.core.is_over() {
                return None;
            }
            // Not `self.memory()`, which would borrow `self` and keep `turn` from being changed.
            let memory = self.core.memories.get(self.server);
            // Before the newest server is looked up: a thread that does not see the memory of a
            // replacement sees that its server is gone, and sleeps where a wake-up is counted.
            let is_detached = self.core.memories.is_detached();
            if self.core.memories.newest() != self.server {
                self.follow_server();
                continue;
            }
            if is_detached {
                self.sleep_detached();
                continue;
            }
            let pages = Pages {
                engine: &memory.engine,
                assignments: &memory.assignments,
                own: &memory.own,
            };
            let mut own = OwnSignals {
                server: self.server,
                first: &memory.signals,
                tables: &mut self.tables,
            };
            if let Turn::Run(info) =
                self.turn.next(pages, &mut own, self.patience_ns, &mut self.spurious, &Futex)
            {
                return Some(info);
            }
            memory.own.note_poll();
        }
    }

    /// Sleeps as long as there is no server, unless there is a reason not to. Thread: cycle.
    #[cold]
    fn sleep_detached(&self) {
        let signals = &self.memory().signals;
        // Read before the checks: a server that is added after them wakes the thread, see
        // `ServerMemories::add`, and so does a reason to end.
        let woken = signals.wake_count();
        let must_end = self.stop.load(Ordering::Acquire) || self.core.is_over();
        let memories = &self.core.memories;
        if !must_end && memories.is_detached() && memories.newest() == self.server {
            signals.sleep(woken, Some(Futex.now_ns().saturating_add(POLL_NS)), &Futex);
        }
    }

    /// Applies new assignments: moves the thread to its CPU and silences disconnected inputs.
    /// Thread: cycle.
    #[cold]
    fn apply_assignments(&mut self) {
        self.applied_plan = self.turn.valid_from;
        self.core.ports.clear_sources();
        self.run_on(self.turn.assignment().cpu());
    }

    /// Switches to the newest server, which counts its cycles from the start. Between cycles.
    #[cold]
    fn follow_server(&mut self) {
        self.server = self.core.memories.newest();
        self.turn.reset();
        (self.applied_plan, self.spurious) = (0, 0);
        self.patience_ns = patience_ns(self.memory());
        for slab in self.core.own_slabs.iter() {
            // 0 is not a cycle of the new server.
            slab.slab().header().finish(0);
        }
        self.transport = TransportPart::default();
        // The previous server may have demoted the thread or have been freewheeling.
        self.freewheels = false;
        self.become_realtime();
    }

    /// Pins the thread to `cpu` if that is among its original or the isolated CPUs; otherwise
    /// restores the original CPUs. Thread: cycle.
    fn run_on(&mut self, cpu: Option<u32>) {
        let Some(original) = self.original_cpus.as_ref() else { return };
        let may_run = |cpu: usize| original.contains(cpu) || self.isolated_cpus.contains(cpu);
        let cpu = cpu.filter(|cpu| may_run(*cpu as usize));
        if cpu == self.cpu {
            return;
        }
        let pinned = cpu.is_some_and(|cpu| {
            let mut only = CpuSet::new();
            only.insert(cpu as usize) && sys::thread::set_affinity(&only).is_ok()
        });
        if !pinned {
            let _ = sys::thread::set_affinity(original);
        }
        // After a failure, the next assignment is tried again: the CPU may be back online.
        self.cpu = cpu.filter(|_| pinned);
    }

    /// Ends the cycle: the program has written its outputs and returned `status`. Does nothing
    /// outside a cycle. Thread: cycle.
    pub(crate) fn finish(&mut self, status: i32) {
        let Some(info) = self.current.get() else { return };
        if status == 0 && !self.core.is_muted() {
            self.transport.call_timebase(&self.tables.current().transport, &self.core, info);
        }
        sys::cycle_guard::enter();
        self.signal_followers(info);
        sys::cycle_guard::leave();
    }

    fn signal_followers(&mut self, info: CycleInfo) {
        self.current.set(None);
        // A muted program's outputs are silent, since they are not marked as finished.
        if !self.core.is_muted() {
            for slab in self.core.own_slabs.iter() {
                slab.slab().header().finish(info.cycle);
            }
        }
        let now_ns = Futex.now_ns();
        let cpu = u32::try_from(self.own_cpu.get()).unwrap_or(rt::shm::NO_CPU);
        self.memory().own.finish(info.cycle, now_ns, cpu);
        let assignment = self.turn.assignment();
        for follower in assignment.followers() {
            if let Some(page) = self.tables.current().page(follower.page) {
                signal_follower(page, follower, info.cycle, now_ns, &Futex);
            }
        }
        if assignment.driver_waits() {
            self.memory().own.wake_driver(&Futex);
        }
        self.update_priority(now_ns);
    }

    /// Restores a priority that the server has taken away, and applies a boost when it becomes due.
    /// Thread: cycle.
    fn update_priority(&mut self, now_ns: u64) {
        let was_late = self.memory().own.take_demoted();
        if was_late {
            self.boost.was_late(now_ns);
        }
        if (was_late || self.boost.becomes_due(now_ns)) && !self.freewheels {
            let _ = self.take_priority();
        }
    }
}

/// How long a sleep on a page that other programs can name lasts without a wake-up, ns; `None` if
/// the operator trusts them.
fn patience_ns(memory: &ServerMemory) -> Option<u64> {
    // MUTATION: runner.sleeps_where_a_predecessor_put_it
    (!memory.engine.flags().trusts_programs).then_some(POLL_NS)
}

/// The client's own signal pages.
struct OwnSignals<'a> {
    server: u32,
    /// The page from the server's memory: place 0 until another page replaces it there.
    first: &'a SignalPage,
    tables: &'a mut TablesReceiver,
}

impl SignalPages for OwnSignals<'_> {
    fn page(&self, place: u32) -> Option<&SignalPage> {
        self.tables
            .current()
            .own_page(self.server, place)
            .or_else(|| (place == 0).then_some(self.first))
    }

    // Inlined here: generic code of another crate calls it and would otherwise place it elsewhere.
    #[inline(always)]
    fn refresh(&mut self) {
        self.tables.refresh();
    }
}

thread_local! {
    /// Set on process threads.
    static CURRENT: RefCell<Option<CurrentCycle>> = const { RefCell::new(None) };
    /// Set on process threads whose loop is the program's own.
    static RUNNER: RefCell<Option<Runner>> = const { RefCell::new(None) };
}

/// Returns whether the calling thread is in a client's cycle, where it must not wait for the
/// server.
pub(crate) fn in_cycle() -> bool {
    current_cycle().is_some()
}

/// Returns the cycle that the calling thread is in. The server may be ahead of a late client.
/// Thread: cycle.
pub(crate) fn current_cycle() -> Option<CycleInfo> {
    // A thread whose thread-locals are being destroyed is in no cycle.
    CURRENT.try_with(|current| current.borrow().as_ref()?.get()).ok().flatten()
}

/// Runs the program's own loop on the calling thread.
pub(crate) fn run_own_loop(runner: Runner, program: impl FnOnce()) {
    RUNNER.set(Some(runner));
    program();
    RUNNER.set(None);
    CURRENT.set(None);
}

fn with_runner<R>(core: &Core, body: impl FnOnce(&mut Runner) -> R) -> Option<R> {
    RUNNER.with(|runner| {
        let mut runner = runner.try_borrow_mut().ok()?;
        runner.as_mut().filter(|runner| ptr::eq(&raw const *runner.core, core)).map(body)
    })
}

/// Runs the first half of a cycle in the program's own loop. Returns `None` on any other thread,
/// and when the loop must end. Thread: cycle.
pub(crate) fn cycle_wait(core: &Core) -> Option<CycleInfo> {
    with_runner(core, |runner| {
        // A program that waits twice has finished the previous cycle.
        runner.finish(0);
        runner.ended |= core.is_muted();
        runner.wait()
    })
    .flatten()
}

/// Runs the second half of a cycle. A `status` other than 0 ends the loop at the next wait. Thread:
/// cycle.
pub(crate) fn cycle_signal(core: &Core, status: i32) {
    with_runner(core, |runner| {
        runner.finish(status);
        runner.ended |= status != 0;
    });
}
