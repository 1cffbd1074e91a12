//! The driver thread: wakes with the driver, runs one cycle after the other, says what it saw.
//!
//! Nothing here allocates, locks, logs or waits without a bound, from the first cycle on.

mod buffers;

use std::io;
use std::mem;
use std::sync::Arc;

use rt::clock::Dll;
use rt::cycle::{Beginning, await_end, begin, has_finished, signal_for};
use rt::park::Park;
use rt::record::{ClientRecord, CycleRecord, Record, UNKNOWN_CPU, Witness};
use rt::shm::{CycleInfo, EngineSegment, Handover, Recording, TransportRequest, TransportRequests};
use rt::sync::{AtomicU32, AtomicU64, Ordering};
use rtrb::Producer;
use sys::futex::Futex;
use sys::memory::{OwnSlab, Shared};
use sys::poll::Waker;

use self::buffers::{CaptureBuffers, PlaybackMix};
use crate::average::Average;
use crate::driver::{Driver, Pace, Wake};
use crate::plan::{Plan, PlanSeat};
use crate::resume::Resume;
use crate::transport::{Coming, Machine, Said};

/// What the driver thread and the control thread share.
#[derive(Debug)]
pub struct CycleShared {
    /// The engine segment.
    pub engine: Shared<EngineSegment>,
    /// The recording: written by the driver thread alone.
    pub recording: Shared<Recording>,
    /// The next plan.
    pub next: Handover<Plan>,
    /// What programs want of the transport that are in no cycle; the others write it on their own pages.
    pub transport: TransportRequests,
    /// Id of the timebase master; 0: none. Control thread writes.
    pub timebase: AtomicU32,
    /// 1: a change waits for a graph that does not end: it is not waited for any more. Control thread writes.
    pub hurry: AtomicU32,
    /// Wakes the control thread.
    pub waker: Waker,
    /// Id of the driver thread; 0 before it runs.
    pub driver_thread: AtomicU32,
    /// 1: the driver thread is to end, or has ended.
    pub stop: AtomicU32,
    /// Where the frame clock goes on, if clients of another server have returned.
    pub resume: Resume,
    /// How long the driver usually keeps its CPU for its books, once it has woken the first clients, ns. Driver thread
    /// writes.
    pub books_ns: AtomicU64,
}

impl CycleShared {
    /// That of a server whose driver thread does not run yet.
    ///
    /// # Errors
    /// The kernel has no event descriptor left.
    pub fn new(engine: Shared<EngineSegment>, recording: Shared<Recording>) -> io::Result<Self> {
        Ok(Self {
            engine,
            recording,
            next: Handover::default(),
            transport: TransportRequests::default(),
            timebase: AtomicU32::new(0),
            hurry: AtomicU32::new(0),
            waker: Waker::new()?,
            driver_thread: AtomicU32::new(0),
            stop: AtomicU32::new(0),
            resume: Resume::default(),
            books_ns: AtomicU64::new(0),
        })
    }
}

/// A plan that is not in force any more, and the generation of the one that is.
pub type Retired = (&'static mut Plan, u64);

/// The driver thread's own state.
pub struct CycleThread {
    /// Starts cycles.
    pub driver: Box<dyn Driver>,
    /// Shared with the control thread.
    pub shared: Arc<CycleShared>,
    /// The plan in force.
    pub plan: &'static mut Plan,
    /// Slabs of the capture ports.
    pub capture: Vec<OwnSlab>,
    /// Plans that are not in force any more.
    pub retired: Producer<Retired>,
    /// Whether the driver waits for the graph's end in each cycle.
    pub sync: bool,
    /// Of this thread under `SCHED_FIFO`; `None`: it is not real-time.
    pub realtime_priority: Option<u32>,
    /// The transport.
    pub transport: Machine,
    /// Times that the frame clock was set forward.
    pub resumed: u32,
}

/// A client that is late for the first time has this part of the next cycle to catch up, before its
/// followers go on without it.
const GRACE_DIVISOR: u64 = 4;

/// That part of a period.
pub(crate) fn grace_ns(period_ns: u64) -> u64 {
    period_ns / GRACE_DIVISOR
}

/// A client that is late for so many cycles without having begun them is taken for one that works outside of them.
const OUTSIDE_CYCLES: u32 = 3;

/// How long a driver that is not bound to real time waits for the graph.
const WHEN_DONE_LIMIT_NS: u64 = 10_000_000_000;
/// How often it looks meanwhile whether somebody has gone.
const WHEN_DONE_LOOK_NS: u64 = 5_000_000;

struct State {
    info: CycleInfo,
    /// When the first clients were let run, ns.
    released_ns: u64,
    clock: Option<Dll>,
    books: Average,
}

/// Tells the control thread that there are no more cycles, however they ended.
struct Ended(Arc<CycleShared>);

impl Drop for Ended {
    fn drop(&mut self) {
        // Release: as the control thread's own, which asks for the end.
        self.0.stop.store(1, Ordering::Release);
        self.0.waker.wake();
    }
}

impl CycleThread {
    /// Runs cycles until the driver or the server ends; gives what the driver has to say of it.
    pub fn run(mut self) -> Option<String> {
        self.shared.driver_thread.store(sys::thread::thread_id(), Ordering::Relaxed);
        let mut state = State {
            info: CycleInfo {
                quantum: self.plan.quantum,
                plan: self.plan.generation,
                ..CycleInfo::default()
            },
            released_ns: 0,
            clock: None,
            books: Average::default(),
        };
        self.follow_pace();
        let _ended = Ended(Arc::clone(&self.shared));
        while self.shared.stop.load(Ordering::Acquire) == 0 {
            match self.wait() {
                Wake::Cycle { due_ns, xrun_us } => {
                    sys::cycle_guard::enter();
                    self.cycle(&mut state, due_ns, xrun_us);
                    sys::cycle_guard::leave();
                }
                Wake::End => break,
            }
        }
        self.driver.stop();
        self.driver.report()
    }

    fn wait(&mut self) -> Wake {
        if self.plan.freewheels {
            return Wake::Cycle { due_ns: Futex.now_ns(), xrun_us: None };
        }
        self.driver.wait()
    }

    fn waits(&self) -> bool {
        self.sync || self.pace() == Pace::WhenDone
    }

    fn pace(&self) -> Pace {
        if self.plan.freewheels { Pace::WhenDone } else { self.driver.pace() }
    }

    fn cycle(&mut self, state: &mut State, due_ns: u64, xrun_us: Option<u32>) {
        let woken_ns = Futex.now_ns();
        let (before, before_released_ns) = (state.info, state.released_ns);
        if !self.waits() {
            self.write_playback(before.cycle, before.quantum);
        }
        let paced = self.driver.pace();
        let replaced = self.adopt();
        // The dates of drivers of different pace have nothing in common.
        let keeps_pace = paced == self.driver.pace();
        let due_ns = if keeps_pace { due_ns } else { woken_ns };
        let info = self.next_info(state, woken_ns, due_ns, keeps_pace && xrun_us.is_none());
        if !self.plan.freewheels {
            self.read_capture(info);
        }
        self.decide_transport(info, before.cycle);
        state.released_ns = Futex.now_ns();
        let beginning = Beginning { info, first: replaced.is_some(), wakes: self.plan.wakes };
        let rousers = self.plan.rousers.iter().map(|rouser| &**rouser);
        begin(&self.shared.engine, &self.plan.seats, beginning, rousers, &Futex);
        let begun_ns = Futex.now_ns();
        let ended = replaced.as_deref().map_or(&*self.plan, |plan| plan);
        let late = count_late(ended, before.cycle, info.cycle);
        collect(ended, before, before_released_ns, info.cycle, &self.shared.recording);
        let switched = replaced.is_some();
        if let Some(plan) = replaced {
            // The ring has room for every plan of the pool.
            let _ = self.retired.push((plan, self.plan.generation));
        }
        state.books.note(Futex.now_ns().saturating_sub(begun_ns));
        // Relaxed: says nothing about other memory.
        self.shared.books_ns.store(state.books.ns(), Ordering::Relaxed);
        if late > 0 {
            self.go_on_without(info, before.cycle);
        }
        if self.waits() {
            self.await_end(info);
            if !self.plan.freewheels {
                self.write_playback(info.cycle, info.quantum);
            }
        }
        self.report(info, state.released_ns, due_ns, xrun_us, late);
        if switched || late > 0 || xrun_us.is_some() {
            self.shared.waker.wake();
        }
    }

    /// Takes the next plan, and the driver that comes with it, if there is one; gives the one before.
    fn adopt(&mut self) -> Option<&'static mut Plan> {
        let next = self.shared.next.take()?;
        let mut handed = next.handed.take();
        match &mut handed {
            // Started for the plan's quantum.
            Some(handed) => handed.take_place_of(&mut self.driver, &mut self.capture),
            None if next.quantum != self.plan.quantum => self.driver.set_quantum(next.quantum),
            None => {}
        }
        if next.freewheels != self.plan.freewheels {
            self.enter_freewheel(next.freewheels);
            // By one clock, which says nothing of the other.
            next.seats.iter().for_each(|seat| seat.pulse.late_cycles.store(0, Ordering::Relaxed));
        }
        let replaced = mem::replace(&mut self.plan, next);
        replaced.handed = handed;
        self.follow_pace();
        Some(replaced)
    }

    /// Leaves the driver's clock, or goes back to it.
    fn enter_freewheel(&mut self, on: bool) {
        if on { self.driver.pause() } else { self.driver.resume() }
    }

    /// Threads whose cycles follow each other without a pause would leave no time to anybody else if they were real-time;
    /// clients see the note, and do the same.
    fn follow_pace(&mut self) {
        let hurries = self.pace() == Pace::WhenDone;
        if hurries == self.shared.engine.freewheels() {
            return;
        }
        self.shared.engine.note_freewheel(hurries);
        if let Some(priority) = self.realtime_priority {
            // Without the right to it, the thread was not real-time before.
            let _ = if hurries { sys::thread::set_other(0) } else { sys::thread::set_fifo(0, priority) };
        }
    }

    /// Hears what was asked since the cycle before, and states the transport of the coming one.
    fn decide_transport(&mut self, info: CycleInfo, before: u32) {
        let round = self.transport.round();
        // Relaxed: says nothing about other memory.
        let master = self.shared.timebase.load(Ordering::Relaxed);
        let mut said = Said { master, ..Said::default() };
        let mut hear = |request: Option<TransportRequest>| {
            said.request = said.request.and_then(request.unwrap_or_default());
        };
        for seat in self.plan.seats.iter().filter(|seat| seat.controls) {
            hear(seat.own.transport().take());
        }
        hear(self.shared.transport.take());
        for seat in &self.plan.seats {
            said.held_up |= seat.own.holds_up(round);
            if seat.client == master {
                said.stated = seat.own.stated_position(before);
            }
        }
        let CycleInfo { cycle, quantum, sample_rate_hz, wakeup_ns, .. } = info;
        let coming = Coming { cycle, quantum, sample_rate_hz, wakeup_ns };
        self.shared.engine.publish_transport(&self.transport.decide(coming, said));
    }

    fn next_info(&mut self, state: &mut State, woken_ns: u64, due_ns: u64, in_step: bool) -> CycleInfo {
        let (quantum, sample_rate_hz) = (self.plan.quantum, self.driver.sample_rate_hz());
        let nominal_ns = CycleInfo::nominal_period_ns(quantum, sample_rate_hz);
        let keeps_time = in_step && quantum == state.info.quantum && !self.plan.freewheels;
        let running = state.clock.as_mut().filter(|_| keeps_time);
        let (wakeup_ns, next_wakeup_ns) = match running {
            Some(clock) => clock.update(due_ns),
            None => {
                state.clock = Some(Dll::locked_at(due_ns, nominal_ns));
                (due_ns, due_ns.saturating_add(nominal_ns as u64))
            }
        };
        let frames = state.info.frames.wrapping_add(u64::from(state.info.quantum));
        let resumed = self.shared.resume.frame_at(wakeup_ns, sample_rate_hz, &mut self.resumed);
        // A quantum more than was counted: no estimate of a client's may be ahead of it.
        let frames = resumed.map_or(frames, |resumed| frames.max(resumed.saturating_add(u64::from(quantum))));
        state.info = CycleInfo {
            cycle: state.info.cycle.wrapping_add(1),
            plan: self.plan.generation,
            quantum,
            sample_rate_hz,
            frames,
            woken_ns,
            wakeup_ns,
            next_wakeup_ns,
            period_ns: state.clock.as_ref().map_or(nominal_ns, Dll::period_ns),
        };
        state.info
    }

    fn read_capture(&mut self, info: CycleInfo) {
        let (slabs, plan) = (&mut self.capture, &*self.plan);
        self.driver.read(&mut CaptureBuffers { slabs, plan, frames: info.quantum as usize });
        for slab in &self.capture {
            slab.header().finish(info.cycle);
        }
    }

    fn write_playback(&mut self, cycle: u32, quantum: u32) {
        self.driver.write(quantum, &mut PlaybackMix { plan: &*self.plan, cycle });
    }

    /// Signals the followers of late clients for them, and takes their priority: who was late before at
    /// once, the others if they have not caught up after a part of the cycle.
    fn go_on_without(&mut self, info: CycleInfo, before: u32) {
        let first_time = self.skip(info.cycle, before, |late_cycles| late_cycles > 1);
        if first_time == 0 {
            return;
        }
        let grace_ns = grace_ns(info.next_wakeup_ns.saturating_sub(info.wakeup_ns));
        sys::clock::sleep_until(info.woken_ns.saturating_add(grace_ns));
        self.skip(info.cycle, before, |_| true);
    }

    /// Goes on without those late clients for which `now` holds; gives the number of the others.
    fn skip(&mut self, cycle: u32, before: u32, now: impl Fn(u32) -> bool) -> u32 {
        let mut others = 0;
        for (index, seat) in self.plan.seats.iter().enumerate() {
            let late_cycles = is_late_by(seat);
            if late_cycles == 0 || has_ended(seat, before, cycle) {
                continue;
            }
            if !now(late_cycles) {
                others += 1;
                continue;
            }
            signal_for(&self.plan.seats, index, cycle, &Futex);
            if !has_ended(seat, before, cycle) {
                demote(seat, late_cycles);
                // One that others can write to may have been made to look awake.
                seat.signals.wake_surely(&Futex);
            }
        }
        others
    }

    fn await_end(&mut self, info: CycleInfo) {
        let awaited =
            |most_late: u32| self.plan.seats.iter().filter(move |seat| is_late_by(seat) <= most_late);
        if self.pace() == Pace::RealTime {
            // Who was late for more than a cycle has been given up already.
            await_end(awaited(1), info.cycle, self.driver.next_due_ns(), &Futex);
            return;
        }
        let deadline_ns = Futex.now_ns().saturating_add(WHEN_DONE_LIMIT_NS);
        let gives_up =
            || [&self.shared.stop, &self.shared.hurry].iter().any(|word| word.load(Ordering::Relaxed) != 0);
        while Futex.now_ns() < deadline_ns && !gives_up() {
            let look_ns = Futex.now_ns().saturating_add(WHEN_DONE_LOOK_NS).min(deadline_ns);
            // Who did not come back in so long is not waited for once more.
            if await_end(awaited(0), info.cycle, look_ns, &Futex) || !self.any_left(info.cycle) {
                return;
            }
        }
    }

    /// Goes on without clients whose connection has ended; true if others still run the cycle.
    fn any_left(&self, cycle: u32) -> bool {
        let mut left = false;
        for (index, seat) in self.plan.seats.iter().enumerate() {
            if seat.pulse.departed.load(Ordering::Relaxed) != 0 {
                signal_for(&self.plan.seats, index, cycle, &Futex);
            } else {
                left |= is_late_by(seat) == 0 && !has_finished(seat, cycle);
            }
        }
        left
    }

    fn report(&self, info: CycleInfo, released_ns: u64, due_ns: u64, xrun_us: Option<u32>, late: u32) {
        let end_ns = Futex.now_ns();
        let delay_us =
            |from_ns: u64| u32::try_from(end_ns.saturating_sub(from_ns) / 1000).unwrap_or(u32::MAX);
        if let Some(xrun_us) = xrun_us {
            self.shared.engine.count_xrun(xrun_us);
        }
        for _ in 0..late {
            self.shared.engine.count_xrun(delay_us(due_ns));
        }
        let record = CycleRecord {
            cycle: info.cycle,
            plan: info.plan,
            quantum: info.quantum,
            sample_rate_hz: info.sample_rate_hz,
            due_ns,
            woken_ns: info.woken_ns,
            released_ns,
            end_ns,
            cpu: u16::try_from(sys::thread::current_cpu()).unwrap_or(UNKNOWN_CPU),
            late: u16::try_from(late).unwrap_or(u16::MAX),
            xrun_us,
            is_away: self.driver.is_away(),
        };
        self.shared.recording.push(&Record::Cycle(record).to_words());
    }
}

/// Takes a late client's priority, so that it keeps no CPU from others, until it finishes. Most that have not begun are
/// waiting for a CPU themselves: they keep their priority, with which they catch up at once, for as long as that is likely.
fn demote(seat: &PlanSeat, late_cycles: u32) {
    let has_begun = seat.own.awake() != seat.own.finished();
    if has_begun || late_cycles == OUTSIDE_CYCLES {
        seat.pulse.demote(&seat.own);
    }
}

/// For how many cycles in a row the client has been late.
fn is_late_by(seat: &PlanSeat) -> u32 {
    seat.pulse.late_cycles.load(Ordering::Relaxed)
}

/// Whether the client has finished the cycle before, or already the one that has begun since.
fn has_ended(seat: &PlanSeat, before: u32, now: u32) -> bool {
    has_finished(seat, before) || has_finished(seat, now)
}

/// Counts, for each client of the plan that has ended, how many cycles in a row it has not finished; gives the
/// number of those that have not finished the last one by their own fault.
///
/// A client that never began it because a predecessor is late is not late itself. Seats are in the order of
/// the graph, so a predecessor is judged before.
fn count_late(ended: &Plan, before: u32, now: u32) -> u32 {
    if before == 0 {
        return 0;
    }
    for seat in &ended.seats {
        seat.pulse.starved.store(0, Ordering::Relaxed);
    }
    let mut late = 0;
    for seat in &ended.seats {
        if has_ended(seat, before, now) {
            seat.pulse.late_cycles.store(0, Ordering::Relaxed);
            continue;
        }
        for follower in seat.followers.iter().filter_map(|follower| ended.seats.get(follower.seat)) {
            follower.pulse.starved.store(1, Ordering::Relaxed);
        }
        let victim = seat.pulse.starved.load(Ordering::Relaxed) != 0 && seat.own.awake() != before;
        if !victim {
            seat.pulse.late_cycles.fetch_add(1, Ordering::Relaxed);
            late += 1;
        }
    }
    late
}

/// Records every client's dates of the cycle that has ended.
fn collect(plan: &Plan, ended: CycleInfo, released_ns: u64, now_cycle: u32, recording: &Recording) {
    if ended.cycle == 0 {
        return;
    }
    for seat in &plan.seats {
        let (client, own, signals, edges) = (seat.client, &**seat.own, &**seat.signals, seat.edges);
        let witness = Witness { client, own, signals, edges };
        let late_cycles = is_late_by(seat);
        let record = ClientRecord {
            late_cycles: u16::try_from(late_cycles).unwrap_or(u16::MAX),
            starved: seat.pulse.starved.load(Ordering::Relaxed) != 0,
            ..ClientRecord::of(witness, ended, released_ns, now_cycle)
        };
        recording.push(&Record::Client(record).to_words());
    }
}
