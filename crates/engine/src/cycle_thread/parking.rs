//! The driver thread without cycles: *deep* while streams play, *parked* while nothing does. It
//! sleeps until it is called, and if it is deep, until more is to be rendered.
//!
//! Cycles are run while a program or a stream that captures needs them, while the transport rolls,
//! and for [`LINGER_NS`]
//! after that, so that what was queued in the device is heard to its end and a program that joins
//! at once finds the device running.

use proto::stream::DeviceState;
use rt::cycle_number;
use rt::park::Park;
use rt::rate::duration_ns;
use rt::shm::CycleInfo;
use rt::sync::Ordering;
use sys::futex::Futex;

use super::{CycleThread, State};
use crate::closing::Closing;
use crate::plan::Plan;

/// How long cycles continue after the last one that was needed, ns.
const LINGER_NS: u64 = 1_000_000_000;

/// Since when no cycle was needed.
#[derive(Debug, Default)]
pub(super) struct Idle(Option<u64>);

impl Idle {
    /// Notes whether the cycle that has ended at `now_ns` was needed; returns whether cycles may
    /// end. Thread: cycle.
    fn note(&mut self, was_needed: bool, now_ns: u64) -> bool {
        if was_needed {
            self.0 = None;
            return false;
        }
        now_ns.saturating_sub(*self.0.get_or_insert(now_ns)) >= LINGER_NS
    }
}

/// Why the driver thread leaves its sleep.
enum Reason {
    /// For a cycle of the plan that it has, or of one that was taken meanwhile.
    Cycle(Option<&'static mut Plan>),
    /// The server ends.
    End,
}

impl CycleThread {
    /// Parks the driver if no cycle has been needed for a while; returns when the next one is.
    pub(super) fn park_if_idle(&mut self, state: &mut State) {
        let is_needed = self.needs_cycles(&*self.plan)
            || self.streams.need_cycles()
            || !self.transport.is_stopped()
            || !self.driver.can_park();
        if !state.idle.note(is_needed, Futex.now_ns()) {
            return;
        }
        self.driver.pause();
        self.leave_graph();
        let reason = self.sleep_until_needed(state);
        self.shared.note_state(DeviceState::Cycling);
        self.shared.note_hardware(false, false);
        state.idle = Idle::default();
        // The device's clock has stopped.
        state.clock = None;
        state.was_parked = true;
        // A cycle that no client ran in: what clients left from the last one is not played again.
        state.info.cycle = cycle_number::next(state.info.cycle);
        match reason {
            Reason::Cycle(taken) => {
                state.taken = taken;
                self.driver.resume();
            }
            Reason::End => {}
        }
    }

    pub(super) fn needs_cycles(&self, plan: &Plan) -> bool {
        plan.needs_cycles || plan.freewheels || plan.driver_swap.is_some()
    }

    /// Sleeps until a cycle is needed. Plans that need none are taken here.
    fn sleep_until_needed(&mut self, state: &mut State) -> Reason {
        let mut closing = Closing::after(self.suspend_ns);
        loop {
            let calls = self.shared.device.call.count();
            self.driver.rest();
            // Acquire: pairs with the Release of `end_cycles`.
            if self.shared.stop.load(Ordering::Acquire) != 0 {
                return Reason::End;
            }
            if let Some(plan) = self.shared.next.take() {
                if self.needs_cycles(plan) {
                    return Reason::Cycle(Some(plan));
                }
                self.take_without_cycle(state, plan);
            } else if self.shared.wants_cycle.swap(0, Ordering::Relaxed) != 0 {
                // Relaxed: the call orders it.
                return Reason::Cycle(None);
            } else {
                let wake_ns = self.serve_streams();
                if self.streams.need_cycles() {
                    return Reason::Cycle(None);
                }
                let plays = wake_ns.is_some();
                let state = if plays { DeviceState::Deep } else { DeviceState::Parked };
                self.shared.note_state(state);
                self.answer_calls(calls);
                let close_ns = closing.step(&mut *self.driver, plays, Futex.now_ns());
                let closed = self.driver.is_closed();
                self.shared.note_hardware(closed, !closed && self.driver.is_away());
                self.shared.device.call.sleep(calls, wake_ns.or(close_ns), &Futex);
                self.shared.device.note_wake_up();
            }
        }
    }

    /// Puts a plan in force that needs no cycle: its quantum is what programs read from now on.
    fn take_without_cycle(&mut self, state: &mut State, plan: &'static mut Plan) {
        let replaced = self.put_in_force(plan);
        let now_ns = Futex.now_ns();
        let (quantum, sample_rate_hz) = (self.plan.quantum, self.driver.sample_rate_hz());
        state.info = CycleInfo {
            plan: self.plan.generation,
            quantum,
            frames: state.info.frame_at(now_ns),
            wakeup_ns: now_ns,
            next_wakeup_ns: now_ns + duration_ns(u64::from(quantum), sample_rate_hz),
            period_ns: CycleInfo::nominal_period_ns(quantum, sample_rate_hz),
            ..state.info
        };
        self.shared.engine.publish(state.info);
        self.retire(replaced);
        self.shared.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_continue_for_a_while_after_the_last_one_that_was_needed() {
        let mut idle = Idle::default();
        assert!(!idle.note(false, 5), "the first");
        assert!(!idle.note(false, 5 + LINGER_NS - 1));
        assert!(idle.note(false, 5 + LINGER_NS));
        assert!(!idle.note(true, 6 + LINGER_NS), "it was needed");
        assert!(!idle.note(false, 7 + LINGER_NS), "and the time begins again");
    }
}
