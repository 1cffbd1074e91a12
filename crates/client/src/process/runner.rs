//! The process thread's loop in its two halves: until it is our turn, and after the program's part.
//!
//! What few cycles do is kept out of these two functions (`cold`, `inline(never)`), so that what all do lies on few pages:
//! the kernel runs other processes between two cycles, and each page must then be looked up anew.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rt::midi::Cursor;
use rt::park::Park;
use rt::shm::{CycleInfo, ORDERS_WORDS, SignalPage};
use rt::turn::{Pages, SignalPages, Turn, TurnState, signal_follower};
use sys::futex::Futex;
use sys::thread::{CpuSet, OwnCpu, SchedulingError};

use super::CycleScope;
use super::inputs::{Heard, room_for_events};
use super::standing::Standing;
use super::tables::TablesReceiver;
use super::transport::TransportPart;
use crate::session::{Core, Link};

/// How long the thread sleeps at most before it looks whether it is to stop, or the server is gone.
const LOOK_NS: u64 = 1_000_000_000;

/// What the process thread knows from cycle to cycle.
#[derive(Debug)]
pub(crate) struct Runner {
    core: Arc<Core>,
    /// Index of the link whose cycles it runs.
    link: u32,
    stop: Arc<AtomicBool>,
    /// The program has ended its own loop.
    ended: bool,
    turn: TurnState<Box<[u32]>>,
    /// The first plan of the orders that were obeyed last in where the thread runs.
    obeyed: u64,
    spurious: u32,
    tables: TablesReceiver,
    /// Room to merge events.
    cursors: Vec<Cursor>,
    /// Writes into inputs of this process that were looked at: see [`sys::write_faults::served`].
    writes: u32,
    /// Where the thread may run when no order says otherwise.
    original_cpus: Option<CpuSet>,
    /// Where it may run if an order says so: nobody is there by himself.
    isolated_cpus: CpuSet,
    /// ... and was told to.
    cpu: Option<u32>,
    own_cpu: OwnCpu,
    transport: TransportPart,
    /// The server freewheels, and so the thread is not real-time.
    freewheels: bool,
    standing: Standing,
    current: CurrentCycle,
}

/// The cycle that the program is in. The thread's own variables have it, too, but take five pages to reach, which no
/// cycle should touch.
type CurrentCycle = Rc<Cell<Option<CycleInfo>>>;

impl Runner {
    /// For the calling thread. Allocates all that cycles need.
    pub(crate) fn new(core: Arc<Core>, stop: Arc<AtomicBool>, tables: TablesReceiver) -> Self {
        // Of an activation before.
        core.link().own.note_quick();
        // Before the words, which cover pages and of which a cycle needs the first.
        let current = CurrentCycle::default();
        let words = vec![std::hint::black_box(0); ORDERS_WORDS].into_boxed_slice();
        CURRENT.set(Some(Rc::clone(&current)));
        Self {
            link: core.links.newest(),
            core,
            stop,
            ended: false,
            turn: TurnState::new(words),
            obeyed: 0,
            spurious: 0,
            tables,
            cursors: room_for_events(),
            writes: sys::write_faults::served(),
            original_cpus: sys::thread::note_usual_affinity().ok(),
            isolated_cpus: sys::topology::isolated(),
            cpu: None,
            own_cpu: OwnCpu::of_this_thread(),
            transport: TransportPart::default(),
            freewheels: false,
            standing: Standing::new(Futex.now_ns()),
            current,
        }
    }

    /// Cycle after cycle, until the thread is to stop or `process`, the program's part, ends it.
    ///
    /// A function of its own, so that it lies beside the two halves: this crate is compiled in one piece.
    #[inline(never)]
    pub(super) fn run(mut self, process: &mut dyn FnMut(&CycleScope<'_>) -> i32) {
        while let Some(info) = self.wait() {
            let status = if self.core.is_muted() { 0 } else { process(&CycleScope::new(&self.core, info)) };
            self.finish(status);
            if status != 0 {
                break;
            }
        }
    }

    /// Sleeps until it is the client's turn, and makes its inputs. `None`: the thread is to leave. Thread: cycle.
    pub(crate) fn wait(&mut self) -> Option<CycleInfo> {
        let info = self.turn()?;
        sys::cycle_guard::enter();
        if self.link().engine.freewheels() != self.freewheels {
            self.follow_freewheel();
        }
        if sys::write_faults::served() != self.writes {
            self.undo_writes();
        }
        if self.turn.valid_from != self.obeyed {
            self.obey();
        }
        self.link().own.begin(info.cycle, Futex.now_ns());
        let heard = Heard {
            orders: self.turn.orders(),
            ports: &self.core.ports,
            tables: self.tables.current(),
            own: &self.core.own_slabs,
            cycle: info.cycle,
            frames: info.quantum as usize,
            copies: self.core.copies_inputs(),
        };
        heard.prepare_inputs(&mut self.cursors);
        heard.pass_to_outputs(&mut self.cursors);
        self.current.set(Some(info));
        sys::cycle_guard::leave();
        if !self.core.is_muted() {
            self.transport.get_ready(&self.tables.current().transport, &self.core, info);
        }
        Some(info)
    }

    /// Gives the calling process thread the priority that it has earned. Not within a cycle.
    pub(super) fn become_realtime(&self) {
        if self.link().engine.flags().gives_priorities {
            return;
        }
        if let Err(error) = self.take_priority() {
            crate::log::warn(&format!(
                "client '{}' runs without real-time priority and may be late: {error}",
                self.core.name
            ));
        }
    }

    /// Takes the real-time priority that the thread has earned, or where a limit is below that, what every program is told.
    /// Thread: cycle.
    fn take_priority(&self) -> Result<(), SchedulingError> {
        let engine = &self.link().engine;
        let Some((told, highest)) = engine.client_priority().zip(engine.highest_program_priority()) else {
            // Nothing is real-time.
            return Ok(());
        };
        let earned = self.standing.priority(told, highest);
        sys::thread::set_fifo(0, earned).or_else(|_| sys::thread::set_fifo(0, told))
    }

    /// Real-time only while the driver's clock leaves time to others. Thread: cycle.
    #[cold]
    fn follow_freewheel(&mut self) {
        self.freewheels = self.link().engine.freewheels();
        // Without the right to it, the thread was not real-time before.
        let _ = if !self.freewheels {
            self.take_priority()
        } else if self.link().engine.client_priority().is_some() {
            sys::thread::set_other(0)
        } else {
            Ok(())
        };
    }

    fn link(&self) -> &Link {
        self.core.links.get(self.link)
    }

    fn turn(&mut self) -> Option<CycleInfo> {
        loop {
            if self.ended || self.stop.load(Ordering::Acquire) || self.core.is_over() {
                return None;
            }
            // Not by `link`, which would keep `turn` from being changed.
            let link = self.core.links.get(self.link);
            // Before the look: a link that is added after it wakes the thread, see `Links::add`.
            let woken = link.signals.wake_count();
            if self.core.links.newest() != self.link {
                self.follow_link();
                continue;
            }
            if self.core.links.is_cut() {
                link.signals.sleep(woken, Some(Futex.now_ns().saturating_add(LOOK_NS)), &Futex);
                continue;
            }
            let pages = Pages { engine: &link.engine, orders: &link.orders, own: &link.own };
            let mut own = OwnSignals { link: self.link, first: &link.signals, tables: &mut self.tables };
            if let Turn::Run(info) = self.turn.next(pages, &mut own, LOOK_NS, &mut self.spurious, &Futex) {
                return Some(info);
            }
            link.own.note_look();
        }
    }

    /// Gives a program that has written into its inputs copies from now on. Thread: cycle.
    #[cold]
    fn undo_writes(&mut self) {
        self.writes = sys::write_faults::served();
        if self.tables.current().restore_slabs() {
            self.core.note_written_inputs();
        }
    }

    /// Begins to obey new orders: the thread goes where it is told to run, and inputs that are not connected any more hear
    /// nothing. Thread: cycle.
    #[cold]
    fn obey(&mut self) {
        self.obeyed = self.turn.valid_from;
        self.core.ports.forget_sources();
        self.go_to(self.turn.orders().cpu());
    }

    /// Goes over to the newest server, whose cycles are counted anew. Between cycles.
    #[cold]
    fn follow_link(&mut self) {
        self.link = self.core.links.newest();
        self.turn.begin_anew();
        (self.obeyed, self.spurious) = (0, 0);
        for slab in self.core.own_slabs.iter() {
            // No cycle of the new server.
            slab.slab().header().finish(0);
        }
        self.transport = TransportPart::default();
        // The server before may have taken it away, or left its clock.
        self.freewheels = false;
        self.become_realtime();
    }

    /// Runs on `cpu` if it is among those that the thread had at first, or isolated; else where it likes. Thread: cycle.
    fn go_to(&mut self, cpu: Option<u32>) {
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
        // Who could not go there tries again when it is told again: the CPU may be back.
        self.cpu = cpu.filter(|_| pinned);
    }

    /// Passes the turn on: the program has written its outputs, and answered `status`. Nothing happens outside a
    /// cycle. Thread: cycle.
    pub(crate) fn finish(&mut self, status: i32) {
        let Some(info) = self.current.get() else { return };
        if status == 0 && !self.core.is_muted() {
            self.transport.lead(&self.tables.current().transport, &self.core, info);
        }
        sys::cycle_guard::enter();
        self.pass_on(info);
        sys::cycle_guard::leave();
    }

    fn pass_on(&mut self, info: CycleInfo) {
        self.current.set(None);
        // What a muted program would have written is silence.
        if !self.core.is_muted() {
            for slab in self.core.own_slabs.iter() {
                slab.slab().header().finish(info.cycle);
            }
        }
        let now_ns = Futex.now_ns();
        let cpu = u32::try_from(self.own_cpu.get()).unwrap_or(rt::shm::NO_CPU);
        self.link().own.finish(info.cycle, now_ns, cpu);
        let orders = self.turn.orders();
        for follower in orders.followers() {
            if let Some(page) = self.tables.current().page(follower.page) {
                signal_follower(page, follower, info.cycle, now_ns, &Futex);
            }
        }
        if orders.driver_waits() {
            self.link().own.wake_driver(&Futex);
        }
        self.follow_standing(now_ns);
    }

    /// Takes the priority back that was taken away, and another one when that is earned. Thread: cycle.
    fn follow_standing(&mut self, now_ns: u64) {
        let was_late = self.link().own.take_demoted();
        if was_late {
            self.standing.was_late(now_ns);
        }
        if (was_late || self.standing.rises(now_ns)) && !self.freewheels {
            let _ = self.take_priority();
        }
    }
}

/// The client's own signal pages.
struct OwnSignals<'a> {
    link: u32,
    /// It came with the link, and is the one in place 0 until another has taken that.
    first: &'a SignalPage,
    tables: &'a mut TablesReceiver,
}

impl SignalPages for OwnSignals<'_> {
    fn page(&self, place: u32) -> Option<&SignalPage> {
        self.tables.current().own_page(self.link, place).or_else(|| (place == 0).then_some(self.first))
    }

    // Called from another crate's generic code, it would lie elsewhere.
    #[inline(always)]
    fn refresh(&mut self) {
        self.tables.refresh();
    }
}

thread_local! {
    /// On a process thread.
    static CURRENT: RefCell<Option<CurrentCycle>> = const { RefCell::new(None) };
    /// On a process thread whose loop is the program's own.
    static RUNNER: RefCell<Option<Runner>> = const { RefCell::new(None) };
}

/// Whether the calling thread is in a client's cycle, where it must not wait for the server.
pub(crate) fn in_cycle() -> bool {
    current_cycle().is_some()
}

/// The cycle that the calling thread is in. The server may be ahead of a client that is late. Thread: cycle.
pub(crate) fn current_cycle() -> Option<CycleInfo> {
    // A thread that is ending is in none.
    CURRENT.try_with(|current| current.borrow().as_ref()?.get()).ok().flatten()
}

/// Leaves the loop to `program` on the calling thread.
pub(crate) fn lend(runner: Runner, program: impl FnOnce()) {
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

/// The first half of a cycle in the program's own loop; `None` on any other thread, and when it is to leave. Thread: cycle.
pub(crate) fn cycle_wait(core: &Core) -> Option<CycleInfo> {
    with_runner(core, |runner| {
        // A program that waits twice has nothing more to do in the cycle before.
        runner.finish(0);
        runner.ended |= core.is_muted();
        runner.wait()
    })
    .flatten()
}

/// The second half; a `status` other than 0 ends the loop at the next wait. Thread: cycle.
pub(crate) fn cycle_signal(core: &Core, status: i32) {
    with_runner(core, |runner| {
        runner.finish(status);
        runner.ended |= status != 0;
    });
}
