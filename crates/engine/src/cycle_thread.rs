//! The driver thread: wakes with the driver, runs one cycle after the other, and records it.
//!
//! From the first cycle on, nothing here allocates, locks, logs or waits without a bound.

mod buffers;
mod parking;
mod shared;
mod streams;
mod write_margin;

use std::mem;
use std::sync::Arc;

use device::{Driver, Pacing, Wake};
use rt::clock::Dll;
use rt::cycle::{NewCycle, await_end, begin};
use rt::cycle_number;
use rt::park::Park;
use rt::record::{CycleRecord, Record, UNKNOWN_CPU};
use rt::shm::{CycleInfo, TransportRequest};
use rt::sync::Ordering;
use rtrb::Producer;
use sys::futex::Futex;
use sys::memory::OwnSlab;

pub use self::buffers::CycleGains;
use self::buffers::{CaptureBuffers, PlaybackMix};
use self::parking::Idle;
pub use self::shared::CycleShared;
use self::write_margin::{WriteMargin, had_time};
use crate::average::Average;
use crate::counters::Counters;
use crate::plan::{Plan, PlanSeat};
use crate::stream_part::{StreamPart, fade_frames};
use crate::supervision::in_cycle;
use crate::transport::{CycleStart, TransportEngine, TransportInputs};

/// A plan that is no longer in force, and the generation of the one that is.
pub type Retired = (&'static mut Plan, u64);

/// The driver thread's own state.
pub struct CycleThread {
    /// Starts the cycles.
    pub driver: Box<dyn Driver>,
    /// Shared with the control thread.
    pub shared: Arc<CycleShared>,
    /// The plan in force.
    pub plan: &'static mut Plan,
    /// Slabs of the capture ports.
    pub capture: Vec<OwnSlab>,
    /// Plans that are no longer in force.
    pub retired: Producer<Retired>,
    /// Streams, and the device's loop for them.
    pub streams: StreamPart,
    /// The device's volume in cycles without streams.
    pub gains: CycleGains,
    /// Whether the driver waits for the graph's end in each cycle.
    pub sync: bool,
    /// Priority of this thread under `SCHED_FIFO`; `None`: it is not real-time.
    pub realtime_priority: Option<u32>,
    /// After how long without anything that plays the driver closes its hardware, ns; `None`:
    /// never.
    pub suspend_ns: Option<u64>,
    /// The transport.
    pub transport: TransportEngine,
    /// How often the frame clock has been set forward.
    pub resumed: u32,
    /// The counters before the first cycle.
    pub counters: Counters,
}

/// How long a driver that is not bound to real time waits for the graph, ns.
const WHEN_DONE_LIMIT_NS: u64 = 10_000_000_000;
/// How often it checks meanwhile whether a client has departed, ns.
const WHEN_DONE_POLL_NS: u64 = 5_000_000;

struct State {
    info: CycleInfo,
    /// When the first clients were woken, ns.
    released_ns: u64,
    clock: Option<Dll>,
    accounting: Average,
    write_margin: WriteMargin,
    idle: Idle,
    /// There were no cycles before the one that begins.
    was_parked: bool,
    /// The driver's device was gone in the cycle before.
    was_away: bool,
    /// The plan that ended the time without cycles.
    taken: Option<&'static mut Plan>,
}

/// Notifies the control thread on drop that there are no more cycles.
struct Ended(Arc<CycleShared>);

impl Drop for Ended {
    fn drop(&mut self) {
        // Release: like the control thread's own store, which asks for the end.
        self.0.stop.store(1, Ordering::Release);
        self.0.waker.wake();
    }
}

impl CycleThread {
    /// Runs cycles until the driver or the server ends. Returns the driver's report.
    pub fn run(mut self) -> Option<String> {
        self.shared.driver_thread.store(sys::thread::thread_id(), Ordering::Relaxed);
        let mut state = State {
            info: CycleInfo {
                cycle: self.counters.cycle,
                frames: self.counters.frames,
                quantum: self.plan.quantum,
                plan: self.plan.generation,
                ..CycleInfo::default()
            },
            released_ns: 0,
            clock: None,
            accounting: Average::default(),
            write_margin: WriteMargin::default(),
            idle: Idle::default(),
            was_parked: false,
            was_away: false,
            taken: None,
        };
        self.follow_pace();
        let _ended = Ended(Arc::clone(&self.shared));
        while self.shared.stop.load(Ordering::Acquire) == 0 {
            match self.wait() {
                Wake::Cycle { due_ns, xrun_us } => {
                    sys::cycle_guard::enter();
                    self.shared.device.note_wake_up();
                    self.cycle(&mut state, due_ns, xrun_us);
                    self.park_if_idle(&mut state);
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
            self.driver.rest();
            return Wake::Cycle { due_ns: Futex.now_ns(), xrun_us: None };
        }
        self.driver.wait()
    }

    fn waits(&self) -> bool {
        self.sync || self.pacing() == Pacing::WhenDone
    }

    fn pacing(&self) -> Pacing {
        if self.plan.freewheels { Pacing::WhenDone } else { self.driver.pacing() }
    }

    fn cycle(&mut self, state: &mut State, due_ns: u64, xrun_us: Option<u32>) {
        let woken_ns = Futex.now_ns();
        let (before, before_released_ns) = (state.info, state.released_ns);
        if !self.waits() {
            self.write_playback(before.cycle, before.quantum);
        }
        let paced = self.driver.pacing();
        let replaced = self.adopt(state);
        if self.streams.has_device() {
            self.follow_graph();
        }
        // The due times of drivers of different pace have nothing in common.
        let keeps_pace = paced == self.driver.pacing();
        let due_ns = if keeps_pace { due_ns } else { woken_ns };
        let info = self.next_info(state, woken_ns, due_ns, keeps_pace && xrun_us.is_none());
        if !self.plan.freewheels {
            self.read_capture(info);
            self.feed_graph(info);
        }
        self.decide_transport(info, before.cycle);
        state.released_ns = Futex.now_ns();
        let new_cycle =
            NewCycle { info, first_of_plan: replaced.is_some(), roots: &self.plan.roots };
        begin(&self.shared.engine, &self.plan.seats, new_cycle, &Futex);
        let begun_ns = Futex.now_ns();
        let ended = replaced.as_deref().map_or(&*self.plan, |plan| plan);
        let late = in_cycle::count_late(ended, before.cycle, info.cycle);
        in_cycle::record_clients(
            ended,
            before,
            before_released_ns,
            info.cycle,
            &self.shared.recording,
        );
        let switched = replaced.is_some();
        if let Some(plan) = replaced {
            self.retire(plan);
        }
        state.accounting.note(Futex.now_ns().saturating_sub(begun_ns));
        // Relaxed: says nothing about other memory.
        self.shared.accounting_ns.store(state.accounting.ns(), Ordering::Relaxed);
        if late > 0 {
            in_cycle::go_on_without_late(&self.plan.seats, info, before.cycle);
        }
        if self.waits() {
            self.end_in_sync(state);
        }
        self.report(info, state.released_ns, due_ns, xrun_us, late);
        let is_away = self.driver.is_away();
        let has_moved = mem::replace(&mut state.was_away, is_away) != is_away;
        if switched || late > 0 || xrun_us.is_some() || has_moved {
            self.shared.waker.wake();
        }
    }

    /// Takes the next plan, and the driver that comes with it, if there is one. Returns the plan
    /// before.
    fn adopt(&mut self, state: &mut State) -> Option<&'static mut Plan> {
        let next = state.taken.take().or_else(|| self.shared.next.take())?;
        let replaced = self.put_in_force(next);
        // The first stream comes with a plan.
        self.take_stream_orders();
        Some(replaced)
    }

    fn put_in_force(&mut self, next: &'static mut Plan) -> &'static mut Plan {
        let mut swap = next.driver_swap.take();
        match &mut swap {
            // Started for the plan's quantum.
            Some(swap) => {
                self.cut_streams();
                swap.take_place_of(&mut self.driver, &mut self.capture);
            }
            None if next.quantum != self.plan.quantum => self.driver.set_quantum(next.quantum),
            None => {}
        }
        if next.freewheels != self.plan.freewheels {
            self.enter_freewheel(next.freewheels);
            // Lateness by one clock says nothing about the other.
            next.seats.iter().for_each(|seat| seat.health.forget_late_cycles());
        }
        let replaced = mem::replace(&mut self.plan, next);
        replaced.driver_swap = swap;
        self.streams.follow_plan(&*self.plan);
        self.follow_pace();
        replaced
    }

    /// Gives a plan back that is no longer in force.
    fn retire(&mut self, plan: &'static mut Plan) {
        // The ring has room for every plan of the pool.
        let _ = self.retired.push((plan, self.plan.generation));
    }

    /// Leaves the driver's clock, or returns to it.
    fn enter_freewheel(&mut self, on: bool) {
        if on { self.driver.pause() } else { self.driver.resume() }
    }

    /// Gives up real-time scheduling while cycles follow each other without a pause, which would
    /// leave no time to any other thread. Clients read the note, and do the same.
    fn follow_pace(&mut self) {
        let hurries = self.pacing() == Pacing::WhenDone;
        if hurries == self.shared.engine.freewheels() {
            return;
        }
        self.shared.engine.note_freewheel(hurries);
        if let Some(priority) = self.realtime_priority {
            // Without the right to it, the thread was not real-time before.
            let _ = if hurries {
                sys::thread::set_other(0)
            } else {
                sys::thread::set_fifo(0, priority)
            };
        }
    }

    /// Takes the transport requests since the cycle before, and publishes the transport of the
    /// coming cycle.
    fn decide_transport(&mut self, info: CycleInfo, before: u32) {
        let round = self.transport.round();
        // Relaxed: says nothing about other memory.
        let master = self.shared.timebase.load(Ordering::Relaxed);
        let mut inputs = TransportInputs { master, ..TransportInputs::default() };
        let mut add = |request: Option<TransportRequest>| {
            inputs.request = inputs.request.and_then(request.unwrap_or_default());
        };
        for seat in self.plan.seats.iter().filter(|seat| seat.controls) {
            add(seat.own.transport().take());
        }
        add(self.shared.transport.take());
        for seat in &self.plan.seats {
            inputs.held_up |= seat.own.delays_transport(round);
            if seat.client == master {
                inputs.stated = seat.own.timebase_position(before);
            }
        }
        let CycleInfo { cycle, quantum, sample_rate_hz, wakeup_ns, .. } = info;
        let start = CycleStart { cycle, quantum, sample_rate_hz, wakeup_ns };
        self.shared.engine.publish_transport(&self.transport.decide(start, inputs));
    }

    fn next_info(
        &mut self,
        state: &mut State,
        woken_ns: u64,
        due_ns: u64,
        in_step: bool,
    ) -> CycleInfo {
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
        let frames = if mem::take(&mut state.was_parked) {
            // The clock went on without cycles, in every program's estimate; the frame that is one
            // more than the estimate allows for its rounding.
            state.info.frame_at(wakeup_ns).saturating_add(1)
        } else {
            state.info.frames.wrapping_add(u64::from(state.info.quantum))
        };
        let resumed = self.shared.resume.frame_at(wakeup_ns, sample_rate_hz, &mut self.resumed);
        // One quantum ahead of the count, so that no client's estimate is ahead of the clock.
        let frames = resumed
            .map_or(frames, |resumed| frames.max(resumed.saturating_add(u64::from(quantum))));
        state.info = CycleInfo {
            cycle: cycle_number::next(state.info.cycle),
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
        let (slabs, plan, frames) = (&mut self.capture, &*self.plan, info.quantum as usize);
        self.driver.read(&mut CaptureBuffers { slabs, plan, frames });
        for slab in &self.capture {
            slab.header().finish(info.cycle);
        }
    }

    fn write_playback(&mut self, cycle: u32, quantum: u32) {
        let (wanted, fade) = (&self.shared.device.gains, fade_frames(self.driver.sample_rate_hz()));
        let channels = self.plan.playback.len();
        self.gains.advance(channels, |channel| wanted.of(channel), quantum, fade);
        if self.streams.has_device() {
            // The last one may have ended.
            self.take_stream_orders();
        }
        if self.streams.has_device() {
            return self.play_with_streams(cycle, quantum);
        }
        let gains = Some(&self.gains);
        self.driver.write(quantum, &mut PlaybackMix { plan: &*self.plan, cycle, gains });
    }

    /// Waits for the graph, and writes what it has made in the same cycle.
    fn end_in_sync(&mut self, state: &mut State) {
        let CycleInfo { cycle, quantum, .. } = state.info;
        if self.pacing() == Pacing::RealTime {
            let waited_until_ns = self.await_playback(state);
            self.write_playback(cycle, quantum);
            state.write_margin.note(Futex.now_ns().saturating_sub(waited_until_ns));
            return;
        }
        self.await_end(state.info);
        if !self.plan.freewheels {
            self.write_playback(cycle, quantum);
        } else if self.streams.has_device() {
            // They go on at their own pace.
            self.serve_streams();
        }
    }

    /// Waits for the clients that are heard in a playback port, until the driver's own part must
    /// begin; returns when the wait ended, or was to end.
    fn await_playback(&self, state: &State) -> u64 {
        let CycleInfo { cycle, period_ns, .. } = state.info;
        let period_ns = period_ns as u64;
        let until_ns = state.write_margin.wait_until_ns(self.driver.next_due_ns(), period_ns);
        // Clients that have been late for more than one cycle are not waited for.
        let is_awaited = |seat: &&PlanSeat| seat.feeds_playback && seat.health.late_cycles() <= 1;
        let awaited = || self.plan.seats.iter().filter(is_awaited);
        // MUTATION: await_playback.past_the_cycle
        let all = await_end(awaited(), cycle, until_ns, &Futex);
        if !all && had_time(state.released_ns, until_ns, period_ns) {
            in_cycle::note_overdue(awaited(), cycle);
        }
        Futex.now_ns().min(until_ns)
    }

    /// Waits for all clients where the graph sets the pace.
    fn await_end(&self, info: CycleInfo) {
        let is_awaited = |seat: &&PlanSeat| seat.health.late_cycles() == 0;
        // MUTATION: await_end.without_limit
        let deadline_ns = Futex.now_ns().saturating_add(WHEN_DONE_LIMIT_NS);
        let gives_up = || {
            [&self.shared.stop, &self.shared.hurry]
                .iter()
                .any(|word| word.load(Ordering::Relaxed) != 0)
        };
        while Futex.now_ns() < deadline_ns && !gives_up() {
            let poll_ns = Futex.now_ns().saturating_add(WHEN_DONE_POLL_NS).min(deadline_ns);
            // A client that has not come back by then is not waited for again.
            let awaited = self.plan.seats.iter().filter(is_awaited);
            if await_end(awaited, info.cycle, poll_ns, &Futex)
                || !in_cycle::go_on_without_departed(&self.plan.seats, info.cycle)
            {
                return;
            }
        }
    }

    fn report(
        &self,
        info: CycleInfo,
        released_ns: u64,
        due_ns: u64,
        xrun_us: Option<u32>,
        late: u32,
    ) {
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
