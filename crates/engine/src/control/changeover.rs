//! A new quantum, another driver, or freewheel on or off: the clients pause, are told, and go on with it in the same cycle.
//!
//! A client whose buffer-size callback has not returned by then joins when it has: it runs no cycle of a length that
//! it does not know of, and the others do not wait for it. One whose freewheel callback has not returned goes on.

use std::collections::{HashMap, HashSet};

use proto::event::Event;
use proto::request::Reply;
use rt::sync::Ordering;
use sys::clock::now_ns;

use super::{Asked, Control};
use crate::client_slot::ClientSlot;

/// What cycles are to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Of so many frames.
    Quantum(u32),
    /// By the driver that was opened, of so many frames.
    Driver(u32),
    /// As fast as the graph can, or by the driver's clock.
    Freewheel(bool),
}

/// A change under way.
#[derive(Debug)]
pub(super) struct Changeover {
    mode: Mode,
    connection: u64,
    number: u32,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// A plan without clients is published, so that no process callback runs beside a callback that tells.
    Pausing { generation: u64, deadline_ns: u64 },
    /// The callbacks run.
    Telling { waiting: HashSet<u64>, deadline_ns: u64 },
    /// The plan of the new mode is published.
    Resuming { generation: u64, deadline_ns: u64 },
}

/// A plan is taken with the next cycle, unless the driver has none.
const PLAN_NS: u64 = 2_000_000_000;
/// So long everybody waits for a callback that tells: programs allocate in it, and some compute filters.
const CALLBACKS_NS: u64 = 500_000_000;

impl Changeover {
    /// Whether plans are to be without clients.
    pub(super) fn pauses(&self) -> bool {
        !matches!(self.step, Step::Resuming { .. })
    }

    /// Whether the driver's ports come into the graph, or go, or are another driver's.
    fn concerns_driver(&self) -> bool {
        !matches!(self.mode, Mode::Quantum(_))
    }
}

impl Control {
    pub(super) fn begin_changeover(&mut self, mode: Mode, connection: u64, number: u32) {
        self.plans.need(now_ns());
        let generation = self.plans.next_generation();
        let step = Step::Pausing { generation, deadline_ns: now_ns() + PLAN_NS };
        self.changeover = Some(Changeover { mode, connection, number, step });
        if mode == Mode::Driver(self.quantum) {
            // Nobody need be told anything: no client misses a cycle.
            self.resume();
        }
    }

    /// Goes on with the change under way, if its step is done or has lasted too long.
    pub(super) fn step_changeover(&mut self) {
        let (now_ns, running) = (now_ns(), self.plans.running());
        let Some(change) = &self.changeover else { return };
        let adopted = |generation: u64, deadline_ns: u64| running >= generation || now_ns > deadline_ns;
        match &change.step {
            Step::Pausing { generation, deadline_ns } if adopted(*generation, *deadline_ns) => {
                self.hurry(*generation);
                self.tell_mode()
            }
            Step::Telling { waiting, deadline_ns } if waiting.is_empty() || now_ns > *deadline_ns => {
                self.resume()
            }
            // What became of a driver must be known before another can come.
            Step::Resuming { generation, deadline_ns }
                if running < *generation
                    && now_ns > *deadline_ns
                    && matches!(change.mode, Mode::Driver(_)) =>
            {
                self.hurry(*generation);
            }
            Step::Resuming { generation, deadline_ns } if adopted(*generation, *deadline_ns) => {
                self.end_changeover()
            }
            _ => {}
        }
    }

    /// A driver that waits for the graph may be waiting for a client that hangs: not any longer, unless it has taken the
    /// plan already.
    fn hurry(&self, generation: u64) {
        let hurries = self.plans.running() < generation;
        self.parts.shared.hurry.store(u32::from(hurries), Ordering::Relaxed);
    }

    fn set_step(&mut self, step: Step) {
        if let Some(change) = &mut self.changeover {
            change.step = step;
        }
    }

    fn tell_mode(&mut self) {
        let waiting = match self.changeover.as_ref().map(|change| change.mode) {
            Some(Mode::Quantum(frames) | Mode::Driver(frames)) => self.tell_who_does_not_know(frames),
            Some(Mode::Freewheel(on)) => self.tell_freewheel(on),
            None => return,
        };
        self.set_step(Step::Telling { waiting, deadline_ns: now_ns() + CALLBACKS_NS });
        self.step_changeover();
    }

    /// Has every freewheel callback called; gives the tokens of all.
    fn tell_freewheel(&mut self, on: bool) -> HashSet<u64> {
        // Answers that come later belong to no change any more.
        self.asked.retain(|_, asked| !matches!(asked, Asked::Freewheel { .. }));
        let has_callback =
            |slot: &ClientSlot| slot.activation.is_some_and(|activation| activation.freewheel_callback);
        let told = self.clients.iter().filter(|(_, slot)| has_callback(slot)).map(|(client, _)| *client);
        let mut waiting = HashSet::new();
        for client in told.collect::<Vec<u32>>() {
            let token = self.token(Asked::Freewheel { client });
            if let Some(slot) = self.clients.get_mut(&client) {
                slot.outbox.push(&Event::Freewheel { on, token });
                waiting.insert(token);
            }
        }
        waiting
    }

    /// Has every buffer-size callback called that does not know of `frames`; gives the tokens of all that have not
    /// answered.
    pub(super) fn tell_who_does_not_know(&mut self, frames: u32) -> HashSet<u64> {
        let mut waiting: HashMap<u32, u64> = self.asked.iter().filter_map(told(frames)).collect();
        let unaware = self.clients.iter().filter(|(_, slot)| slot.must_be_told(frames));
        let unasked = unaware.map(|(client, _)| *client).filter(|client| !waiting.contains_key(client));
        for client in unasked.collect::<Vec<u32>>() {
            let token = self.token(Asked::Quantum { client, frames });
            if let Some(slot) = self.clients.get_mut(&client) {
                slot.outbox.push(&Event::Quantum { frames, token });
                waiting.insert(client, token);
            }
        }
        waiting.into_values().collect()
    }

    fn resume(&mut self) {
        match self.changeover.as_ref().map(|change| change.mode) {
            Some(Mode::Quantum(frames) | Mode::Driver(frames)) => {
                self.quantum = frames;
                // Those that became active while the others were told.
                self.tell_who_does_not_know(frames);
                self.hand_over_opened();
            }
            Some(Mode::Freewheel(on)) => self.freewheels = on,
            None => return,
        }
        self.plans.need(now_ns());
        let generation = self.plans.next_generation();
        self.set_step(Step::Resuming { generation, deadline_ns: now_ns() + PLAN_NS });
        // With the driver's ports, the order of the graph changes too, and programs are told of it.
        self.restart_latencies(self.changeover.as_ref().is_some_and(Changeover::concerns_driver));
    }

    fn end_changeover(&mut self) {
        self.parts.shared.hurry.store(0, Ordering::Relaxed);
        match self.changeover.take() {
            Some(Changeover { mode: Mode::Driver(_), .. }) => self.end_switch(),
            Some(change) => self.reply(change.connection, change.number, Reply::Done),
            None => {}
        }
    }

    /// The callback of `client` has returned.
    pub(super) fn quantum_called(&mut self, token: u64, client: u32, frames: u32) {
        if let Some(slot) = self.clients.get_mut(&client) {
            slot.told_quantum = frames;
        }
        self.waits_no_more(token);
        if !self.changeover.as_ref().is_some_and(Changeover::pauses) {
            // An answer of an earlier change may have come after this one's.
            self.tell_who_does_not_know(self.quantum);
        }
    }

    /// The question has been answered, or its client is gone.
    pub(super) fn waits_no_more(&mut self, token: u64) {
        if let Some(Changeover { step: Step::Telling { waiting, .. }, .. }) = &mut self.changeover {
            waiting.remove(&token);
        }
    }
}

/// Who was asked to call its callback for `frames`, and with which token.
fn told(frames: u32) -> impl Fn((&u64, &Asked)) -> Option<(u32, u64)> {
    move |(token, asked)| match asked {
        Asked::Quantum { client, frames: told } if *told == frames => Some((*client, *token)),
        _ => None,
    }
}
