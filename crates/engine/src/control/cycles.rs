//! What the cycles tell: durations, load, xruns, and who is left out.

use std::collections::VecDeque;

use proto::event::Event;
use proto::status::{ClientStatus, Status, Timing};
use rt::park::Park;
use rt::shm::CycleInfo;
use rt::sync::Ordering;
use sys::futex::Futex;

use super::Control;
use super::places::RELEASE_NS;
use crate::client_slot::{Bypass, ClientSlot};
use crate::records::Record;

/// A client that was left out is looked at after this; twice as late each further time.
const FIRST_LOOK_NS: u64 = 10_000_000;
/// At the latest after this.
const LAST_LOOK_NS: u64 = 5_000_000_000;
/// A client that was in time for so long is looked at as early as the first time.
const FORGET_NS: u64 = 30_000_000_000;
/// Default of how many quanta a client may be late before it is left out.
const TIMEOUT_QUANTA: u32 = 3;

/// DSP load over a window of cycles, as `jack_cpu_load` has it.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// When the last client of each cycle finished, as a part of the cycle.
    window: VecDeque<f64>,
    /// The cycle that is being added up: (number, begin, latest end).
    current: (u32, u64, u64),
    shown: f64,
}

/// Cycles of the window.
const WINDOW: usize = 32;

impl Load {
    fn client_finished(
        &mut self,
        cycle: u32,
        woken_ns: u64,
        finished_ns: u64,
        period_ns: f64,
    ) -> Option<f64> {
        let ended = (self.current.0 != cycle).then(|| self.close_cycle(period_ns)).flatten();
        if self.current.0 != cycle {
            self.current = (cycle, woken_ns, woken_ns);
        }
        self.current.2 = self.current.2.max(finished_ns);
        ended
    }

    fn close_cycle(&mut self, period_ns: f64) -> Option<f64> {
        let (cycle, begin_ns, end_ns) = self.current;
        if cycle == 0 || period_ns <= 0.0 {
            return None;
        }
        self.window.push_back(end_ns.saturating_sub(begin_ns) as f64 / period_ns);
        if self.window.len() < WINDOW {
            return None;
        }
        let highest = self.window.iter().copied().fold(0.0, f64::max);
        let average = self.window.iter().sum::<f64>() / self.window.len() as f64;
        self.window.clear();
        // A cycle that nearly failed counts more than the many that did not.
        let load = if highest >= 0.95 { highest } else { average };
        self.shown = 0.5 * self.shown + 0.5 * load.min(1.0);
        Some(self.shown)
    }
}

impl Control {
    /// Reads the cycle records, and decides who is left out and who is let in again.
    pub(super) fn look_at_cycles(&mut self) {
        let period_ns = CycleInfo::nominal_period_ns(self.quantum, self.parts.driver.sample_rate_hz);
        let mut xruns = Vec::new();
        while let Ok(record) = self.parts.records.pop() {
            match record {
                Record::Cycle { xrun_us, is_away, .. } => {
                    self.cycles += 1;
                    self.note_device(is_away);
                    xruns.extend(xrun_us);
                }
                Record::Client { client, late_cycles, woken_ns, .. } if late_cycles > 0 => {
                    let delay_ns = Futex.now_ns().saturating_sub(woken_ns);
                    xruns.push(u32::try_from(delay_ns / 1000).unwrap_or(u32::MAX));
                    self.client_was_late(client, late_cycles);
                }
                Record::Client { .. } => self.measure(record, period_ns),
            }
        }
        for delay_us in xruns {
            self.tell_all(&Event::Xrun { delay_us }, None);
        }
        self.let_in_again();
        if self.parts.shared.stop.load(Ordering::Acquire) != 0 && self.stopping.is_none() {
            self.stopping = Some("the driver has nothing more to play".into());
        }
    }

    /// Says it when the device has gone, or come back.
    fn note_device(&mut self, is_away: bool) {
        if self.is_away != is_away {
            self.is_away = is_away;
            let news = if is_away { "is not there: cycles go on by timer" } else { "is back" };
            eprintln!("consort: {} {news}", self.parts.driver.description);
        }
    }

    fn measure(&mut self, record: Record, period_ns: f64) {
        let Record::Client { cycle, client, woken_ns, signaled_ns, awake_ns, finished_ns, cpu, .. } = record
        else {
            return;
        };
        let Some(slot) = self.clients.get_mut(&client) else { return };
        let (scheduling_ns, duration_ns) =
            (awake_ns.saturating_sub(signaled_ns), finished_ns.saturating_sub(awake_ns));
        slot.measured.note(scheduling_ns, duration_ns, cpu);
        if let Some(load) = self.load.client_finished(cycle, woken_ns, finished_ns, period_ns) {
            self.parts.shared.engine.note_load((load * 1e6) as u32);
        }
    }

    fn timeout_cycles(&self) -> u32 {
        let Some(timeout_ms) = self.parts.config.client_timeout_ms.filter(|timeout| *timeout > 0) else {
            return TIMEOUT_QUANTA;
        };
        let frames = u64::from(timeout_ms) * u64::from(self.parts.driver.sample_rate_hz) / 1000;
        u32::try_from(frames.div_ceil(u64::from(self.quantum.max(1)))).unwrap_or(u32::MAX)
    }

    fn client_was_late(&mut self, client: u32, late_cycles: u32) {
        let (timeout_cycles, when_done) =
            (self.timeout_cycles(), self.parts.driver.when_done || self.freewheels);
        let Some(slot) = self.clients.get_mut(&client) else { return };
        slot.late_cycles += 1;
        slot.released_until_ns = Futex.now_ns() + RELEASE_NS;
        if late_cycles >= timeout_cycles && slot.bypass.is_none() && !when_done {
            let now_ns = Futex.now_ns();
            if now_ns.saturating_sub(slot.bypassed_ns) > FORGET_NS {
                slot.bypasses = 0;
            }
            let wait_ns = (FIRST_LOOK_NS << slot.bypasses.min(9)).min(LAST_LOOK_NS);
            slot.bypass = Some(Bypass { look_at_ns: now_ns + wait_ns, looks: slot.memory.own.looks() });
            slot.bypassed_ns = now_ns;
            slot.bypasses += 1;
            self.plans.need(sys::clock::now_ns());
        }
        self.parts.mirror.note_late(client, slot.late_cycles, slot.bypass.is_some());
    }

    /// A client that is bypassed comes back when it looks for its turn again: it has finished what it began, and
    /// it runs, as one that was stopped does not.
    fn let_in_again(&mut self) {
        let now_ns = Futex.now_ns();
        for (client, slot) in &mut self.clients {
            let Some(bypass) = &mut slot.bypass else { continue };
            if now_ns < bypass.look_at_ns {
                continue;
            }
            // What the page says is the client's own word: if it is not true, it is late again.
            let own = &slot.memory.own;
            let looks = own.looks();
            if own.finished() == own.awake() && looks != bypass.looks {
                slot.bypass = None;
                slot.pulse.late_cycles.store(0, Ordering::Relaxed);
                self.plans.need(sys::clock::now_ns());
                self.parts.mirror.note_late(*client, slot.late_cycles, false);
            } else {
                *bypass = Bypass { look_at_ns: now_ns + FIRST_LOOK_NS, looks };
                slot.memory.signals.wake_up(&Futex);
            }
        }
    }

    fn driver_now(&self) -> String {
        let description = &self.parts.driver.description;
        if self.is_away { format!("{description}, not there: cycles by timer") } else { description.clone() }
    }

    /// The server, for the command line.
    pub(super) fn status(&self) -> Status {
        let (ports, connections) = self.parts.model.counts();
        let clients = self.parts.model.clients().filter_map(|client| {
            let slot = self.clients.get(&client.id)?;
            Some(client_status(client.id, &client.name, slot))
        });
        Status {
            name: self.parts.config.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            process: sys::process::process_id(),
            driver: self.driver_now(),
            sample_rate_hz: self.parts.driver.sample_rate_hz,
            quantum: self.quantum,
            sync: self.parts.config.sync,
            freewheel: self.freewheels,
            realtime_priority: self.parts.config.realtime_priority,
            cycles: self.cycles,
            xruns: self.engine().xruns(),
            load: f64::from(self.engine().load_ppm()) / 1e6,
            clients: clients.collect(),
            ports: (ports, self.parts.config.port_max),
            connections,
        }
    }
}

fn client_status(id: u32, name: &str, slot: &ClientSlot) -> ClientStatus {
    let durations = |part: fn(&(u64, u64)) -> u64| {
        let mut all: Vec<u64> = slot.measured.dates.iter().map(part).collect();
        all.sort_unstable();
        (all.get(all.len() / 2).copied().unwrap_or(0), all.last().copied().unwrap_or(0))
    };
    let (scheduling_median_ns, scheduling_max_ns) = durations(|dates| dates.0);
    let (duration_median_ns, duration_max_ns) = durations(|dates| dates.1);
    let cycles = u32::try_from(slot.measured.dates.len()).unwrap_or(u32::MAX);
    let timing =
        Timing { cycles, scheduling_median_ns, scheduling_max_ns, duration_median_ns, duration_max_ns };
    ClientStatus {
        id,
        name: name.into(),
        process: slot.process.unwrap_or(0),
        active: slot.activation.is_some(),
        bypassed: slot.bypass.is_some(),
        late_cycles: slot.late_cycles,
        cpu: slot.measured.cpu,
        timing: (cycles > 0).then_some(timing),
    }
}
