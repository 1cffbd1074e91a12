//! What the cycles tell: durations, load, xruns, and who is left out.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::event::Event;
use rt::record::{ClientRecord, CycleRecord, Record};
use rt::sync::Ordering;
use sys::clock::now_ns;
use sys::futex::Futex;

use super::Control;
use crate::client_slot::Bypass;
use crate::lateness::Lateness;
use crate::release::Why;

/// A client that was left out is looked at after this; twice as late each further time.
const FIRST_LOOK_NS: u64 = 10_000_000;
/// At the latest after this.
const LAST_LOOK_NS: u64 = 5_000_000_000;
/// A client that was in time for so long is looked at as early as the first time.
const FORGET_NS: u64 = 30_000_000_000;

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
    fn client_finished(&mut self, cycle: &CycleRecord, finished_ns: u64) -> Option<f64> {
        let is_new = self.current.0 != cycle.cycle;
        let ended = is_new.then(|| self.close_cycle(cycle.period_ns() as f64)).flatten();
        if is_new {
            self.current = (cycle.cycle, cycle.woken_ns, cycle.woken_ns);
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
    /// Reads what was recorded, and decides who is left out and who is let in again.
    pub(super) fn look_at_cycles(&mut self) {
        let mut xruns = Vec::new();
        let shared = Arc::clone(&self.parts.shared);
        while let Some(words) = self.cursor.next(&shared.recording) {
            match Record::from_words(&words) {
                Some(Record::Cycle(cycle)) => {
                    self.cycles += u64::from(cycle.cycle.wrapping_sub(self.newest.cycle));
                    self.newest = cycle;
                    if self.plans.has_newest_driver(cycle.plan) {
                        self.note_device(cycle.is_away);
                    }
                    self.xruns.begin_cycle();
                    if let Some(places) = self.places.as_mut().filter(|_| !self.freewheels) {
                        places.note_cycle(cycle);
                    }
                    if let Some(xrun_us) = cycle.xrun_us {
                        xruns.push(xrun_us);
                        self.book_driver_xrun(xrun_us);
                    }
                }
                Some(Record::Client(record)) if record.late_cycles > 0 => {
                    let delay_ns = now_ns().saturating_sub(self.newest.woken_ns);
                    xruns.push(u32::try_from(delay_ns / 1000).unwrap_or(u32::MAX));
                    self.book_late_client(&record);
                    self.xruns.note(record);
                    self.client_was_late(record.client);
                }
                Some(Record::Client(record)) => {
                    self.xruns.note(record);
                    self.measure(record);
                    self.note_place(record);
                }
                None => {}
            }
        }
        self.say_why_away();
        for delay_us in xruns {
            self.tell_all(&Event::Xrun { delay_us }, None);
        }
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

    /// Says once why a device that is plugged in does not come back: a new quantum may be one that it cannot do, and
    /// whoever asked for it has been answered by then.
    fn say_why_away(&mut self) {
        let why = self.is_away.then(|| self.parts.driver.why_away.now()).flatten();
        if let Some(why) = why.as_ref().filter(|_| why != self.said_why_away) {
            eprintln!("consort: {} cannot come back: {why}", self.parts.driver.description);
        }
        self.said_why_away = why;
    }

    fn measure(&mut self, record: ClientRecord) {
        let cycle: CycleRecord = self.newest;
        // Another number: the cycle's own record was overwritten before it was read.
        let (true, Some(duration_ns)) = (cycle.cycle == record.cycle, record.duration_ns()) else { return };
        let Some(slot) = self.clients.get_mut(&record.client) else { return };
        slot.lateness.was_in_time();
        slot.measured.note(cycle.woken_ns, record.scheduling_ns(), duration_ns, record.cpu);
        if let Some(load) = self.load.client_finished(&cycle, record.finished_ns) {
            self.parts.shared.engine.note_load((load * 1e6) as u32);
        }
    }

    fn client_was_late(&mut self, client: u32) {
        let (quantum, sample_rate_hz) = (self.quantum, self.parts.driver.sample_rate_hz);
        let timeout_ms = self.parts.config.client_timeout_ms;
        let now_ns = now_ns();
        let Some(slot) = self.clients.get_mut(&client) else { return };
        slot.late_cycles += 1;
        slot.lateness.was_late();
        let timed_out = slot.lateness.bypasses(timeout_ms, quantum, sample_rate_hz);
        if (timed_out || slot.lateness.releases()) && slot.release.begin(now_ns, Why::Late) {
            self.plans.need(now_ns);
        }
        if timed_out && slot.bypass.is_none() {
            if now_ns.saturating_sub(slot.bypassed_ns) > FORGET_NS {
                slot.bypasses = 0;
            }
            let wait_ns = (FIRST_LOOK_NS << slot.bypasses.min(9)).min(LAST_LOOK_NS);
            slot.bypass = Some(Bypass { look_at_ns: now_ns + wait_ns, looks: slot.memory.own.looks() });
            slot.lateness = Lateness::default();
            slot.bypassed_ns = now_ns;
            // The driver looks at it no more, and it may be about to begin what it never ends.
            slot.pulse.demote(&slot.memory.own);
            slot.bypasses += 1;
            slot.all_bypasses += 1;
            self.plans.need(now_ns);
        }
        self.parts.mirror.note_late(client, slot.late_cycles, slot.bypass.is_some());
    }

    /// A client that is bypassed comes back when it looks for its turn again: it has finished what it began, and
    /// it runs, as one that was stopped does not.
    pub(super) fn let_in_again(&mut self) {
        let now_ns = now_ns();
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
                // The one that it was left out with may be over.
                slot.release.begin(now_ns, Why::Late);
                slot.pulse.late_cycles.store(0, Ordering::Relaxed);
                self.plans.need(now_ns);
                self.parts.mirror.note_late(*client, slot.late_cycles, false);
            } else {
                *bypass = Bypass { look_at_ns: now_ns + FIRST_LOOK_NS, looks };
                slot.memory.signals.wake_surely(&Futex);
            }
        }
    }

    /// When it is looked next whether one that was left out comes back.
    pub(super) fn next_return_ns(&self) -> Option<u64> {
        self.clients.values().filter_map(|slot| Some(slot.bypass?.look_at_ns)).min()
    }
}
