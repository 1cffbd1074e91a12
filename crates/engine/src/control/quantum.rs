//! A new quantum: the clients pause, are told, and go on with it in the same cycle.

use std::collections::HashSet;

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

/// Bound of each step: a client that has not answered goes on all the same.
const STEP_NS: u64 = 2_000_000_000;

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
        let step = Step::Pausing { generation, deadline_ns: Futex.now_ns() + STEP_NS };
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
        let told: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, slot)| slot.activation.is_some_and(|activation| activation.quantum_callback))
            .map(|(client, _)| *client)
            .collect();
        let mut waiting = HashSet::new();
        for client in told {
            let token = self.token(Asked::Quantum { client });
            if let Some(slot) = self.clients.get_mut(&client) {
                slot.outbox.push(&Event::Quantum { frames, token });
                waiting.insert(token);
            }
        }
        self.set_step(Step::Telling { waiting, deadline_ns: Futex.now_ns() + STEP_NS });
        self.step_quantum_change();
    }

    fn resume(&mut self) {
        let Some(frames) = self.quantum_change.as_ref().map(|change| change.frames) else { return };
        self.quantum = frames;
        self.plans.need(sys::clock::now_ns());
        let generation = self.plans.next_generation();
        self.set_step(Step::Resuming { generation, deadline_ns: Futex.now_ns() + STEP_NS });
        self.forget_unanswered_quanta();
        self.restart_latencies(false);
    }

    fn end_change(&mut self) {
        if let Some(change) = self.quantum_change.take() {
            self.reply(change.connection, change.number, Reply::Done);
        }
    }

    /// Answers that come later belong to no change any more.
    fn forget_unanswered_quanta(&mut self) {
        self.asked.retain(|_, asked| !matches!(asked, Asked::Quantum { .. }));
    }

    /// The question has been answered, or its client is gone.
    pub(super) fn quantum_called(&mut self, token: u64) {
        if let Some(QuantumChange { step: Step::Telling { waiting, .. }, .. }) = &mut self.quantum_change {
            waiting.remove(&token);
        }
    }
}
