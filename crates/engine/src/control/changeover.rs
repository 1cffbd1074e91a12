//! A new quantum: the clients pause, are told, and go on with it in the same cycle.
//!
//! A client whose buffer-size callback has not returned by then joins when it has: it runs no cycle of a length that
//! it does not know of, and the others do not wait for it.

use std::collections::{HashMap, HashSet};

use proto::event::Event;
use proto::request::Reply;
use rt::park::Park;
use sys::futex::Futex;

use super::{Asked, Control};

/// A change under way.
#[derive(Debug)]
pub(super) struct QuantumChange {
    frames: u32,
    connection: u64,
    number: u32,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// A plan without clients is published, so that no process callback runs beside a buffer-size callback.
    Pausing { generation: u64, deadline_ns: u64 },
    /// The callbacks run.
    Telling { waiting: HashSet<u64>, deadline_ns: u64 },
    /// The plan with the new quantum is published.
    Resuming { generation: u64, deadline_ns: u64 },
}

/// A plan is taken with the next cycle, unless the driver has none.
const PLAN_NS: u64 = 2_000_000_000;
/// So long everybody waits for a buffer-size callback: programs allocate in it, and some compute filters.
const CALLBACKS_NS: u64 = 500_000_000;

impl QuantumChange {
    /// Whether plans are to be without clients.
    pub(super) fn pauses(&self) -> bool {
        !matches!(self.step, Step::Resuming { .. })
    }
}

impl Control {
    pub(super) fn begin_quantum_change(&mut self, frames: u32, connection: u64, number: u32) {
        self.plans.need(sys::clock::now_ns());
        let generation = self.plans.next_generation();
        let step = Step::Pausing { generation, deadline_ns: Futex.now_ns() + PLAN_NS };
        self.quantum_change = Some(QuantumChange { frames, connection, number, step });
    }

    /// Goes on with the change under way, if its step is done or has lasted too long.
    pub(super) fn step_quantum_change(&mut self) {
        let (now_ns, running) = (Futex.now_ns(), self.plans.running());
        let Some(change) = &self.quantum_change else { return };
        let adopted = |generation: u64, deadline_ns: u64| running >= generation || now_ns > deadline_ns;
        match &change.step {
            Step::Pausing { generation, deadline_ns } if adopted(*generation, *deadline_ns) => {
                self.tell_quantum()
            }
            Step::Telling { waiting, deadline_ns } if waiting.is_empty() || now_ns > *deadline_ns => {
                self.resume()
            }
            Step::Resuming { generation, deadline_ns } if adopted(*generation, *deadline_ns) => {
                self.end_change()
            }
            _ => {}
        }
    }

    fn set_step(&mut self, step: Step) {
        if let Some(change) = &mut self.quantum_change {
            change.step = step;
        }
    }

    fn tell_quantum(&mut self) {
        let Some(frames) = self.quantum_change.as_ref().map(|change| change.frames) else { return };
        let waiting = self.tell_who_does_not_know(frames);
        self.set_step(Step::Telling { waiting, deadline_ns: Futex.now_ns() + CALLBACKS_NS });
        self.step_quantum_change();
    }

    /// Has every buffer-size callback called that does not know of `frames`; gives the tokens of all that have not
    /// answered.
    fn tell_who_does_not_know(&mut self, frames: u32) -> HashSet<u64> {
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
        let Some(frames) = self.quantum_change.as_ref().map(|change| change.frames) else { return };
        self.quantum = frames;
        // Those that became active while the others were told.
        self.tell_who_does_not_know(frames);
        self.plans.need(sys::clock::now_ns());
        let generation = self.plans.next_generation();
        self.set_step(Step::Resuming { generation, deadline_ns: Futex.now_ns() + PLAN_NS });
        self.restart_latencies(false);
    }

    fn end_change(&mut self) {
        if let Some(change) = self.quantum_change.take() {
            self.reply(change.connection, change.number, Reply::Done);
        }
    }

    /// The callback of `client` has returned.
    pub(super) fn quantum_called(&mut self, token: u64, client: u32, frames: u32) {
        if let Some(slot) = self.clients.get_mut(&client) {
            slot.told_quantum = frames;
        }
        self.waits_no_more(token);
        if !self.quantum_change.as_ref().is_some_and(QuantumChange::pauses) {
            // An answer of an earlier change may have come after this one's.
            self.tell_who_does_not_know(self.quantum);
        }
    }

    /// The question has been answered, or its client is gone.
    pub(super) fn waits_no_more(&mut self, token: u64) {
        if let Some(QuantumChange { step: Step::Telling { waiting, .. }, .. }) = &mut self.quantum_change {
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
