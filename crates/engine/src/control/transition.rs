//! What starts the cycles and how long they are, and the change to another quantum, another driver,
//! or in and out of freewheel.
//!
//! [`steps`] decides; this carries its effects out.

mod drivers;
mod steps;

use std::collections::HashSet;

use proto::event::Event as Notification;
use proto::limits::QUANTUM_FRAMES;
use proto::request::{Reply, RequestError};
use rt::shm::CycleInfo;
use rt::sync::Ordering;
use sys::clock::now_ns;

use super::Control;
use super::questions::Questions;
use super::ticket::Ticket;
use crate::client_slot::ClientSlot;
use crate::opening::{DriverFacts, StartTrigger, must_close_first};

use drivers::Drivers;
pub(super) use steps::{Change, Transition};
use steps::{Effect, Event, Facts};

/// The mode of the cycles, and the change under way to another one.
pub(super) struct CycleSettings {
    /// Length of a cycle, frames.
    pub(super) quantum: u32,
    /// Cycles follow each other without a pause.
    pub(super) freewheels: bool,
    /// About the driver that the newest plan has.
    pub(super) driver: DriverFacts,
    /// Starts a driver that waits until it has listeners.
    pub(super) start_trigger: StartTrigger,
    /// Callbacks that have not returned.
    callbacks: Questions<Callback>,
    transition: Option<Transition>,
    drivers: Drivers,
}

/// A callback that clients were asked to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callback {
    /// The buffer-size callback, with this many frames.
    Quantum(u32),
    /// The freewheel callback.
    Freewheel,
}

impl Callback {
    /// The callback that a change waits for.
    fn of(transition: &Transition) -> Self {
        match transition.change() {
            Change::Freewheel(_) => Self::Freewheel,
            Change::Quantum(_) | Change::Driver { .. } => Self::Quantum(transition.quantum()),
        }
    }
}

impl CycleSettings {
    /// Cycles of `quantum` frames by `driver`, and no change under way.
    pub(super) fn new(quantum: u32, driver: DriverFacts, start_trigger: StartTrigger) -> Self {
        Self {
            quantum,
            freewheels: false,
            driver,
            start_trigger,
            callbacks: Questions::default(),
            transition: None,
            drivers: Drivers::default(),
        }
    }

    /// Length of a cycle, ns; `None`: cycles follow each other without a pause.
    pub(super) fn period_ns(&self) -> Option<u64> {
        let is_paced = !self.freewheels && !self.driver.when_done;
        is_paced
            .then(|| CycleInfo::nominal_period_ns(self.quantum, self.driver.sample_rate_hz) as u64)
    }

    /// Whether plans are to be without clients.
    pub(super) fn pauses(&self) -> bool {
        self.transition.as_ref().is_some_and(Transition::pauses)
    }

    /// When a pause is to end that waits for callbacks, `CLOCK_MONOTONIC` ns.
    pub(super) fn pause_until_ns(&self) -> Option<u64> {
        self.transition.as_ref().and_then(Transition::pause_until_ns)
    }

    /// Whether a client's freewheel callback has not returned: no cycle runs in it meanwhile.
    pub(super) fn awaits_freewheel_callback(&self, client: u32) -> bool {
        let mut open = self.callbacks.iter();
        open.any(|(_, asked, callback)| asked == client && *callback == Callback::Freewheel)
    }

    /// Refuses a change while another one is under way.
    fn check_idle(&self) -> Result<(), RequestError> {
        if self.transition.is_none() {
            return Ok(());
        }
        let reason = "another change of the driver, the quantum, or freewheel is under way";
        Err(RequestError::Failed(reason.into()))
    }

    /// Returns the change to another quantum, if it is possible as far as that is known before it
    /// is tried. `None`: it is the quantum already.
    pub(super) fn check_quantum(&self, frames: u32) -> Result<Option<Change>, RequestError> {
        if !QUANTUM_FRAMES.contains(&frames) {
            return Err(RequestError::Quantum(frames));
        }
        self.check_idle()?;
        if frames == self.quantum {
            return Ok(None);
        }
        if !self.driver.quanta.contains(&frames) {
            let (least, most) = (self.driver.quanta.start(), self.driver.quanta.end());
            return Err(RequestError::Driver(format!(
                "{} has no room for cycles of {frames} frames, but for {least} to {most}; with \
                 fewer periods they may be longer",
                self.driver.description
            )));
        }
        Ok(Some(Change::Quantum(frames)))
    }

    /// Returns the change in or out of freewheel, if it is possible.
    pub(super) fn check_freewheel(&self, on: bool) -> Result<Change, RequestError> {
        self.check_idle()?;
        if on == self.freewheels {
            let already = if on { "freewheels" } else { "does not freewheel" };
            return Err(RequestError::NotAllowed(format!("the server {already} already")));
        }
        Ok(Change::Freewheel(on))
    }
}

impl Control {
    /// Begins a change that was found possible.
    pub(super) fn begin_change(&mut self, change: Change, ticket: Ticket) {
        let closes_first = match &change {
            Change::Driver { choice, .. } => {
                must_close_first(&self.settings.driver.devices, choice)
            }
            Change::Quantum(_) | Change::Freewheel(_) => false,
        };
        let facts = self.transition_facts();
        let (transition, effects) = Transition::begin(change, ticket, closes_first, &facts);
        self.settings.transition = Some(transition);
        let follow_up = self.carry_out_all(effects);
        self.advance_transition(follow_up);
    }

    /// Goes on with the change under way, if a step of it is done or has lasted too long.
    pub(super) fn step_transition(&mut self) {
        if let Some(event) = self.take_opened_driver() {
            self.advance_transition(event);
        }
        self.advance_transition(Event::Polled);
    }

    fn advance_transition(&mut self, event: Event) {
        let mut event = event;
        loop {
            let facts = self.transition_facts();
            let Some(transition) = &mut self.settings.transition else { return };
            let effects = transition.on(event, &facts);
            if effects.is_empty() {
                return;
            }
            event = self.carry_out_all(effects);
        }
    }

    fn transition_facts(&self) -> Facts {
        let awaited = self.settings.transition.as_ref().map(Callback::of);
        let is_awaited = |callback: &Callback| Some(*callback) == awaited;
        Facts {
            now_ns: now_ns(),
            quantum: self.settings.quantum,
            period_ns: CycleInfo::nominal_period_ns(
                self.settings.quantum,
                self.settings.driver.sample_rate_hz,
            ) as u64,
            running: self.publisher.running(),
            next_generation: self.publisher.next_generation(),
            callbacks_run: self
                .settings
                .callbacks
                .iter()
                .any(|(_, _, callback)| is_awaited(callback)),
        }
    }

    /// Carries effects out; returns the event to go on with.
    fn carry_out_all(&mut self, effects: Vec<Effect>) -> Event {
        let mut next = Event::Polled;
        for effect in effects {
            if let Err(error) = self.carry_out(effect) {
                next = Event::DriverFailed(error);
            }
        }
        next
    }

    fn carry_out(&mut self, effect: Effect) -> Result<(), RequestError> {
        match effect {
            Effect::StandIn => return self.stand_in(),
            Effect::OpenDriver { or_previous } => self.open_driver(or_previous),
            Effect::Publish => self.publisher.need(now_ns()),
            Effect::NotifyQuantum(frames) => self.notify_quantum(frames),
            Effect::NotifyFreewheel(on) => self.notify_freewheel(on),
            Effect::SetQuantum(frames) => self.settings.quantum = frames,
            Effect::SetFreewheel(on) => self.settings.freewheels = on,
            Effect::HandOverDriver => self.hand_over_opened(),
            Effect::RestartLatencies { order_changes } => self.recompute_latencies(order_changes),
            // Relaxed: says nothing about other memory.
            Effect::Hurry(on) => self.shared.hurry.store(u32::from(on), Ordering::Relaxed),
            Effect::Finish(result) => self.finish_transition(result),
        }
        Ok(())
    }

    fn finish_transition(&mut self, result: Result<(), RequestError>) {
        let Some(transition) = self.settings.transition.take() else { return };
        let ticket = transition.into_ticket();
        match result {
            Ok(()) => self.reply(ticket, Reply::Done),
            Err(error) => self.refuse(ticket, error),
        }
    }

    /// Requests every freewheel callback.
    fn notify_freewheel(&mut self, on: bool) {
        // A later answer belongs to no change under way.
        self.settings.callbacks.withdraw(|_, callback| *callback == Callback::Freewheel);
        let has_callback = |slot: &ClientSlot| {
            slot.activation.is_some_and(|activation| activation.freewheel_callback)
        };
        let clients = self.clients.slots.iter().filter(|(_, slot)| has_callback(slot));
        for client in clients.map(|(client, _)| *client).collect::<Vec<u32>>() {
            let question = |token| Notification::Freewheel { on, token };
            self.ask_for_callback(client, Callback::Freewheel, question);
        }
    }

    /// Requests every buffer-size callback that was not called with `frames` and has not been
    /// requested yet.
    pub(super) fn notify_quantum(&mut self, frames: u32) {
        let callback = Callback::Quantum(frames);
        let open = self.settings.callbacks.iter().filter(|(_, _, open)| **open == callback);
        let asked: HashSet<u32> = open.map(|(_, client, _)| client).collect();
        let unaware = self.clients.slots.iter().filter(|(_, slot)| slot.must_be_notified(frames));
        let unasked = unaware.map(|(client, _)| *client).filter(|client| !asked.contains(client));
        for client in unasked.collect::<Vec<u32>>() {
            self.ask_for_callback(client, callback, |token| Notification::Quantum {
                frames,
                token,
            });
        }
    }

    fn ask_for_callback(
        &mut self,
        client: u32,
        callback: Callback,
        question: impl FnOnce(u64) -> Notification,
    ) {
        if let Some(token) = self.clients.ask(client, question) {
            self.settings.callbacks.note(token, client, callback);
        }
    }

    /// Notes that the callback of `client` that was requested with `token` has returned.
    pub(super) fn callback_returned(&mut self, client: u32, token: u64) {
        let callback = self.settings.callbacks.answered(client, token);
        let Some(Callback::Quantum(frames)) = callback else { return };
        if let Some(slot) = self.clients.slots.get_mut(&client) {
            slot.known_quantum = frames;
        }
        if !self.settings.pauses() {
            // The answer may be one to an earlier change than the last.
            self.notify_quantum(self.settings.quantum);
        }
        self.publisher.need_soon(now_ns());
    }

    /// Stops waiting for the callbacks of a client that has gone.
    pub(super) fn forget_callbacks_of(&mut self, client: u32) {
        self.settings.callbacks.forget(client);
    }
}

#[cfg(test)]
mod tests;
