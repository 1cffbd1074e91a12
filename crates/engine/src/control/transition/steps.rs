//! The change to another quantum, another driver, or in and out of freewheel, step by step.
//!
//! One change is under way at a time. This is the decision part alone: events in, effects out. The
//! control thread carries the effects out (`control/transition.rs`).
//!
//! ```text
//!   quantum, freewheel                      driver
//!          │                    ┌──────────────┴───────┐ the device that is open
//!          │                    │                      │ must be closed first
//!          │                    ▼                      ▼
//!          │                 Opening ◄───────────── StandingIn
//!          │                    │      a timer drives,
//!          │                    │      the driver before is back
//!          ▼   another quantum  │ opened
//!       Pausing ◄───────────────┤
//!          │ a plan without     │
//!          ▼ clients runs       │
//!      Notifying                │ the same quantum:
//!          │ the callbacks have │ no client misses a cycle
//!          ▼ returned           │
//!      Resuming ◄───────────────┘
//!          │ the plan of the new mode runs
//!          ▼
//!     the request is answered
//! ```
//!
//! * The clients pause while their callbacks run, so that no process callback runs at the same time
//!   as a callback that announces another quantum or freewheel. They go on in the same cycle.
//! * The pause is silence, so it is short ([`pause_ns`]). A client whose callback has not returned
//!   by then is left out of plans and joins once it has; the others do not wait for it. The answer
//!   to the request does, for [`CALLBACKS_NS`].
//! * A driver that cannot be opened changes nothing. If its device had to be closed first, a timer
//!   with the same ports stands in for it meanwhile, and the driver before is opened again.
//! * A program that disconnects before its request is answered changes nothing either: the change
//!   goes on, and its answer goes nowhere.
//! * Only one step waits without a bound: what became of a driver that was handed to the driver
//!   thread must be known before another can follow.

use proto::driver::DriverChoice;
use proto::request::RequestError;

use crate::control::ticket::Ticket;

/// What cycles are to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::control) enum Change {
    /// Cycles of this many frames.
    Quantum(u32),
    /// Cycles without a pause in between, or by the driver's clock again.
    Freewheel(bool),
    /// Cycles by another driver.
    Driver {
        /// The driver.
        choice: DriverChoice,
        /// The length of a cycle from then on, frames.
        quantum: u32,
    },
}

/// A change under way. Thread: control.
#[derive(Debug)]
pub(in crate::control) struct Transition {
    change: Change,
    /// The request that asked for the change.
    ticket: Ticket,
    step: Step,
    /// The length of a cycle when the change is done, frames.
    quantum: u32,
    /// Why the new driver is not the requested one.
    refusal: Option<String>,
    /// The driver thread does not wait for the graph: a client may hang.
    hurries: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A timer is on its way to the driver thread, so that the driver in force can be closed.
    StandingIn,
    /// A thread opens the driver.
    Opening,
    /// A plan without clients, of this generation, is on its way to the driver thread.
    Pausing(PendingPlan),
    /// The clients' callbacks run, and no client is in a plan.
    Notifying {
        /// Until when the pause lasts at most.
        pause_until_ns: u64,
        /// Until when the answer waits for callbacks.
        callbacks_until_ns: u64,
    },
    /// The plan of the new mode is on its way to the driver thread, or callbacks still run.
    Resuming { plan: PendingPlan, callbacks_until_ns: u64 },
}

/// A plan that the driver thread has not taken yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingPlan {
    generation: u64,
    deadline_ns: u64,
}

/// What happens to a change under way.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Time has passed, or something in [`Facts`] has changed.
    Polled,
    /// The driver is open, and the graph has its ports.
    DriverOpened {
        /// Why it is the previous driver, opened again, and not the requested one.
        refusal: Option<String>,
    },
    /// No driver could be opened.
    DriverFailed(RequestError),
    /// The driver that was in force is back from the driver thread.
    DriverRetired,
}

/// What holds when an event is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// `CLOCK_MONOTONIC` ns.
    pub(super) now_ns: u64,
    /// The length of a cycle, frames.
    pub(super) quantum: u32,
    /// The length of a cycle, ns.
    pub(super) period_ns: u64,
    /// Generation of the plan that cycles have begun with.
    pub(super) running: u64,
    /// Generation of the next plan.
    pub(super) next_generation: u64,
    /// A callback that the change has requested has not returned.
    pub(super) callbacks_run: bool,
}

/// What is to be done, in this order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Let a timer drive the cycles, with the ports of the driver in force.
    StandIn,
    /// Open the driver on a thread.
    OpenDriver {
        /// If it cannot be opened, open the previous driver again, which has been closed.
        or_previous: bool,
    },
    /// Publish another plan.
    Publish,
    /// Call the buffer-size callbacks that have not been called with this quantum.
    NotifyQuantum(u32),
    /// Call the freewheel callbacks.
    NotifyFreewheel(bool),
    /// Cycles have this many frames from the next plan on.
    SetQuantum(u32),
    /// Begin or end freewheel with the next plan.
    SetFreewheel(bool),
    /// The next plan brings the driver that was opened.
    HandOverDriver,
    /// The latencies change; with the driver's ports, the order of the graph changes, too.
    RestartLatencies {
        /// The order of the graph changes.
        order_changes: bool,
    },
    /// Whether a driver that waits for the graph stops waiting: a client may hang.
    Hurry(bool),
    /// The change is over: answer the request.
    Finish(Result<(), RequestError>),
}

/// A plan is taken with the next cycle, unless the driver has none.
const PLAN_NS: u64 = 2_000_000_000;
/// How long the answer waits for callbacks: programs allocate in them, and some compute filters.
pub(super) const CALLBACKS_NS: u64 = 500_000_000;
/// What a machine's stall may cost a client that does everything right; a client is not suspended
/// for less either.
const STALL_NS: u64 = 20_000_000;

/// How long all clients pause for callbacks that do not return. In long cycles, the next one would
/// begin no sooner than after a period anyway.
fn pause_ns(period_ns: u64) -> u64 {
    period_ns.clamp(STALL_NS, CALLBACKS_NS)
}

impl Transition {
    /// Begins a change. `must_close_first`: the driver in force holds the device of the driver that
    /// is asked for.
    pub(super) fn begin(
        change: Change,
        ticket: Ticket,
        must_close_first: bool,
        facts: &Facts,
    ) -> (Self, Vec<Effect>) {
        let quantum = match change {
            Change::Quantum(frames) | Change::Driver { quantum: frames, .. } => frames,
            Change::Freewheel(_) => facts.quantum,
        };
        let is_driver = matches!(change, Change::Driver { .. });
        let mut transition =
            Self { change, ticket, step: Step::Opening, quantum, refusal: None, hurries: false };
        let effects = match (is_driver, must_close_first) {
            (true, true) => {
                transition.step = Step::StandingIn;
                vec![Effect::StandIn]
            }
            (true, false) => vec![Effect::OpenDriver { or_previous: false }],
            (false, _) => transition.pause(facts),
        };
        (transition, effects)
    }

    /// Handles an event; returns what is to be done about it. An event that does not belong to the
    /// step changes nothing.
    pub(super) fn on(&mut self, event: Event, facts: &Facts) -> Vec<Effect> {
        match (self.step, event) {
            (Step::StandingIn, Event::DriverRetired) => {
                self.step = Step::Opening;
                vec![Effect::OpenDriver { or_previous: true }]
            }
            (Step::Opening, Event::DriverOpened { refusal }) => {
                if refusal.is_some() {
                    // The previous driver goes on with its quantum.
                    (self.refusal, self.quantum) = (refusal, facts.quantum);
                }
                if self.quantum == facts.quantum {
                    self.resume(facts.now_ns, facts)
                } else {
                    self.pause(facts)
                }
            }
            (Step::StandingIn | Step::Opening, Event::DriverFailed(error)) => {
                vec![Effect::Finish(Err(error))]
            }
            (Step::Pausing(plan), Event::Polled) if plan.is_over(facts) => self.notify(plan, facts),
            (Step::Notifying { pause_until_ns, callbacks_until_ns }, Event::Polled)
                // MUTATION: pause.as_long_as_callbacks_run
                if !facts.callbacks_run || facts.now_ns >= pause_until_ns =>
            {
                self.resume(callbacks_until_ns, facts)
            }
            (Step::Resuming { plan, callbacks_until_ns }, Event::Polled)
                if plan.is_over(facts)
                    && (!facts.callbacks_run || facts.now_ns >= callbacks_until_ns) =>
            {
                self.finish(plan, facts)
            }
            _ => Vec::new(),
        }
    }

    fn pause(&mut self, facts: &Facts) -> Vec<Effect> {
        self.step = Step::Pausing(PendingPlan::next(facts));
        vec![Effect::Publish]
    }

    fn notify(&mut self, plan: PendingPlan, facts: &Facts) -> Vec<Effect> {
        self.step = Step::Notifying {
            pause_until_ns: facts.now_ns + pause_ns(facts.period_ns),
            callbacks_until_ns: facts.now_ns + CALLBACKS_NS,
        };
        let mut effects = self.hurry(!plan.runs(facts));
        effects.push(match self.change {
            Change::Freewheel(on) => Effect::NotifyFreewheel(on),
            Change::Quantum(_) | Change::Driver { .. } => Effect::NotifyQuantum(self.quantum),
        });
        effects
    }

    fn resume(&mut self, callbacks_until_ns: u64, facts: &Facts) -> Vec<Effect> {
        self.step = Step::Resuming { plan: PendingPlan::next(facts), callbacks_until_ns };
        let mut effects = match self.change {
            Change::Freewheel(on) => vec![Effect::SetFreewheel(on)],
            // The callbacks of clients that became active meanwhile.
            Change::Quantum(_) | Change::Driver { .. } => {
                vec![Effect::SetQuantum(self.quantum), Effect::NotifyQuantum(self.quantum)]
            }
        };
        if matches!(self.change, Change::Driver { .. }) {
            effects.push(Effect::HandOverDriver);
        }
        let order_changes = !matches!(self.change, Change::Quantum(_));
        effects.extend([Effect::Publish, Effect::RestartLatencies { order_changes }]);
        effects
    }

    fn finish(&mut self, plan: PendingPlan, facts: &Facts) -> Vec<Effect> {
        if !plan.runs(facts) && matches!(self.change, Change::Driver { .. }) {
            // What became of the driver must be known before another can follow.
            return self.hurry(true);
        }
        let mut effects = self.hurry(false);
        let refusal = self.refusal.take();
        effects.push(Effect::Finish(refusal.map_or(Ok(()), |why| Err(RequestError::Driver(why)))));
        effects
    }

    fn hurry(&mut self, hurries: bool) -> Vec<Effect> {
        let is_news = std::mem::replace(&mut self.hurries, hurries) != hurries;
        if is_news { vec![Effect::Hurry(hurries)] } else { Vec::new() }
    }

    /// What is asked for.
    pub(super) fn change(&self) -> &Change {
        &self.change
    }

    /// The length of a cycle when the change is done, frames.
    pub(super) fn quantum(&self) -> u32 {
        self.quantum
    }

    /// The request that the end of the change answers.
    pub(super) fn into_ticket(self) -> Ticket {
        self.ticket
    }

    /// When the pause ends at the latest, `CLOCK_MONOTONIC` ns; `None`: it waits for no callbacks.
    pub(in crate::control) fn pause_until_ns(&self) -> Option<u64> {
        match self.step {
            Step::Notifying { pause_until_ns, .. } => Some(pause_until_ns),
            _ => None,
        }
    }

    /// Whether plans are to be without clients.
    pub(in crate::control) fn pauses(&self) -> bool {
        matches!(self.step, Step::Pausing(_) | Step::Notifying { .. })
    }
}

impl PendingPlan {
    fn next(facts: &Facts) -> Self {
        Self { generation: facts.next_generation, deadline_ns: facts.now_ns + PLAN_NS }
    }

    fn runs(self, facts: &Facts) -> bool {
        facts.running >= self.generation
    }

    /// Whether the plan runs, or the driver has no cycles.
    fn is_over(self, facts: &Facts) -> bool {
        self.runs(facts) || facts.now_ns > self.deadline_ns
    }
}

#[cfg(test)]
mod tests;
