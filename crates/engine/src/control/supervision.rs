//! The supervisor: reads what the driver thread recorded, measures, suspends and reinstates late
//! clients, and diagnoses xruns.
//!
//! What follows from lateness is decided by [`ClientSupervision`](crate::supervision); this notes
//! the events, and carries the actions out.

mod load;
mod xruns;

use std::sync::Arc;

use proto::event::Event as Notification;
use rt::cycle_number;
use rt::record::{ClientRecord, CycleRecord, Record};
use rt::shm::{OwnPage, RecordCursor, Recording};
use rt::sync::Ordering;
use sys::clock::now_ns;
use sys::machine_sleep::MachineSleep;

use super::Control;
use crate::client_slot::ClientSlot;
use crate::supervision::{Action, Event, Poll, timeout_cycles};

use load::Load;
use xruns::XrunLog;

/// The state of reading the recording.
#[derive(Debug)]
pub(super) struct Supervisor {
    load: Load,
    /// How far the recording was read.
    cursor: RecordCursor,
    /// The newest cycle that was read, whose clients' records follow.
    pub(super) newest: CycleRecord,
    /// Cycles since the server started.
    pub(super) cycles: u64,
    /// The driver's device is gone.
    pub(super) is_away: bool,
    /// The reason last logged why the device does not come back.
    logged_device_error: Option<String>,
    pub(super) xruns: XrunLog,
}

impl Supervisor {
    /// Creates a supervisor that reads `recording` from its oldest record on.
    pub(super) fn new(recording: &Recording, trace_switches: bool) -> Self {
        Self {
            load: Load::default(),
            cursor: RecordCursor::oldest(recording),
            newest: CycleRecord::default(),
            cycles: 0,
            is_away: false,
            logged_device_error: None,
            xruns: XrunLog::new(trace_switches),
        }
    }
}

impl Control {
    /// Reads the records of the cycles since the last call.
    pub(super) fn poll_cycles(&mut self) {
        let now_ns = now_ns();
        let mut xruns_us = Vec::new();
        let shared = Arc::clone(&self.shared);
        while let Some(words) = self.supervisor.cursor.next(&shared.recording) {
            match Record::from_words(&words) {
                Some(Record::Cycle(cycle)) => {
                    self.note_cycle(cycle);
                    xruns_us.extend(cycle.xrun_us);
                }
                Some(Record::Client(record)) if record.late_cycles > 0 => {
                    let delay_ns =
                        sys::clock::now_ns().saturating_sub(self.supervisor.newest.woken_ns);
                    xruns_us.push(u32::try_from(delay_ns / 1000).unwrap_or(u32::MAX));
                    self.note_late(&record, now_ns);
                }
                Some(Record::Client(record)) => self.note_in_time(record, now_ns),
                None => {}
            }
        }
        self.log_device_error();
        for delay_us in xruns_us {
            self.notify_all(&Notification::Xrun { delay_us }, None);
        }
        if self.shared.stop.load(Ordering::Acquire) != 0 && self.stopping.is_none() {
            self.stopping = Some("the driver has nothing more to play".into());
        }
    }

    fn note_cycle(&mut self, cycle: CycleRecord) {
        let supervisor = &mut self.supervisor;
        supervisor.cycles += match supervisor.newest.cycle {
            0 => 1,
            newest => u64::from(cycle_number::distance(newest, cycle.cycle)),
        };
        supervisor.newest = cycle;
        supervisor.xruns.begin_cycle();
        if let Some(xrun_us) = cycle.xrun_us {
            supervisor.xruns.add_driver_xrun(&cycle, xrun_us);
        }
        if self.publisher.has_newest_driver(cycle.plan) {
            self.note_device(cycle.is_away);
        }
        if let Some(placement) =
            self.publisher.placement.as_mut().filter(|_| !self.settings.freewheels)
        {
            placement.note_cycle(cycle);
        }
    }

    fn note_late(&mut self, record: &ClientRecord, now_ns: u64) {
        let Supervisor { xruns, newest, .. } = &mut self.supervisor;
        xruns.add_late_client(newest, record, &self.model, &mut self.clients);
        xruns.note_record(*record);
        let timeout_cycles = timeout_cycles(
            self.config.client_timeout_ms,
            self.settings.quantum,
            self.settings.driver.sample_rate_hz,
        );
        let client = record.client;
        let Some(slot) = self.clients.slots.get(&client) else { return };
        let (polls, overdue_cycles) = (slot.memory.own.polls(), slot.health.overdue_cycles());
        self.supervise(client, Event::Late { timeout_cycles, polls, overdue_cycles }, now_ns);
        if let Some(ClientSlot { supervision, .. }) = self.clients.slots.get(&client) {
            let (late_cycles, suspended) = (supervision.late_cycles(), supervision.is_suspended());
            self.registry.note_late(client, late_cycles, suspended);
        }
    }

    fn note_in_time(&mut self, record: ClientRecord, now_ns: u64) {
        self.supervisor.xruns.note_record(record);
        self.note_durations(record, now_ns);
        self.note_placement(record, now_ns);
    }

    fn note_durations(&mut self, record: ClientRecord, now_ns: u64) {
        let cycle = self.supervisor.newest;
        // If the numbers differ, the cycle's own record was overwritten before it was read.
        let (true, Some(duration_ns)) = (cycle.cycle == record.cycle, record.duration_ns()) else {
            return;
        };
        let Some(slot) = self.clients.slots.get_mut(&record.client) else { return };
        slot.measured.note(cycle.woken_ns, record.scheduling_ns(), duration_ns, record.cpu);
        if let Some(load) = self.supervisor.load.note_finished(&cycle, record.finished_ns) {
            self.shared.engine.note_load((load * 1e6) as u32);
        }
        self.supervise(record.client, Event::InTime, now_ns);
    }

    /// Notes that the machine has slept, if it has: cards have lost what was queued in them, and
    /// a thread that renders far ahead would look only when that should have been played.
    pub(super) fn notice_sleep(&mut self) {
        let Some(slept_ns) = self.sleep.as_mut().and_then(MachineSleep::take) else { return };
        sys::report!(
            "consort: the machine slept for {:.1} s: devices go on where they were",
            slept_ns as f64 / 1e9
        );
        self.streams.call_all();
    }

    /// Logs that the device has gone, or come back.
    fn note_device(&mut self, is_away: bool) {
        if self.supervisor.is_away != is_away {
            self.supervisor.is_away = is_away;
            let news = if is_away { "is not there: cycles go on by timer" } else { "is back" };
            sys::report!("consort: {} {news}", self.settings.driver.description);
        }
    }

    /// Logs once why a device that is plugged in does not come back. It may not support a quantum
    /// that was requested, and successfully answered, while it was away.
    fn log_device_error(&mut self) {
        let why = self.supervisor.is_away.then(|| self.settings.driver.why_away.now()).flatten();
        if let Some(why) = why.as_ref().filter(|_| why != self.supervisor.logged_device_error) {
            sys::report!("consort: {} cannot come back: {why}", self.settings.driver.description);
        }
        self.supervisor.logged_device_error = why;
    }

    /// Reads the kernel's counters of the driver thread and of the clients' process threads.
    pub(super) fn probe_threads(&mut self) {
        // Relaxed: a number, which says nothing about other memory.
        let driver = self.shared.driver_thread.load(Ordering::Relaxed);
        let Supervisor { xruns, cycles, .. } = &mut self.supervisor;
        xruns.probe_threads(driver, &mut self.clients, *cycles);
    }

    /// Diagnoses the xruns whose grace is over.
    pub(super) fn diagnose_xruns(&mut self) {
        let Supervisor { xruns, cycles, .. } = &mut self.supervisor;
        xruns.diagnose_due(&self.clients, *cycles);
    }

    /// Checks the suspended clients that are due: a client that polls for its turn is reinstated.
    pub(super) fn check_suspended(&mut self) {
        let now_ns = now_ns();
        let is_due = |slot: &ClientSlot| {
            slot.supervision.check_at_ns().is_some_and(|check_at_ns| check_at_ns <= now_ns)
        };
        let due = self.clients.slots.iter().filter(|(_, slot)| is_due(slot));
        let polls: Vec<(u32, Poll)> =
            due.map(|(client, slot)| (*client, poll(&slot.memory.own))).collect();
        for (client, poll) in polls {
            self.supervise(client, Event::Checked(poll), now_ns);
        }
    }

    /// Time of the supervisor's next check, `CLOCK_MONOTONIC` ns.
    pub(super) fn next_check_ns(&self) -> Option<u64> {
        let checks = self.clients.slots.values().filter_map(|slot| slot.supervision.check_at_ns());
        checks.chain(self.supervisor.xruns.due_ns()).min()
    }

    /// Passes an event to the supervision of a client, and carries out what follows.
    pub(super) fn supervise(&mut self, client: u32, event: Event, now_ns: u64) {
        let Some(slot) = self.clients.slots.get_mut(&client) else { return };
        match slot.supervision.on(event, now_ns) {
            None => return,
            Some(Action::Unpin) => {}
            Some(Action::Suspend) => {
                slot.threads.demote(&slot.memory.own);
                self.demote_running(client);
            }
            Some(Action::Reinstate) => {
                slot.threads.restore();
                slot.health.forget_late_cycles();
                self.registry.note_late(client, slot.supervision.late_cycles(), false);
            }
            Some(Action::Wake) => {
                slot.memory.wake();
                return self.demote_running(client);
            }
            Some(Action::ReportMismatch { assigned }) => {
                let name = self.client_name(client);
                return sys::report!(
                    "consort: client '{name}' does not run on CPU {assigned}, which --cpus assigns \
                     to it: its own affinity or its cpuset excludes that CPU"
                );
            }
        }
        self.publisher.need(now_ns);
    }

    /// Demotes the threads with which the program of a suspended client keeps a CPU: the thread
    /// that it has named may be another one.
    fn demote_running(&mut self, client: u32) {
        // A program may have several clients, of which only one hangs.
        let slots = self.clients.slots.values();
        let named = slots.filter_map(|slot| {
            Some((slot.threads.process_thread()?.id(), Arc::clone(&slot.memory.own)))
        });
        let named: Vec<_> = named.collect();
        let Some(slot) = self.clients.slots.get_mut(&client) else { return };
        slot.threads.demote_running(|id| {
            let by_clients = named.iter().filter(|(thread, _)| *thread == id);
            by_clients.inspect(|(_, own)| own.note_demoted()).count() > 0
        });
    }
}

fn poll(own: &OwnPage) -> Poll {
    Poll { polls: own.polls(), is_idle: own.finished() == own.awake() }
}
