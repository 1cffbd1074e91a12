//! The client's part in the transport: ready to roll before the program's callback, bar and beat after it.

use std::sync::Arc;

use rt::shm::CycleInfo;
use rt::transport::{Position, Transport};

use super::CycleScope;
use crate::session::Core;

/// Answers whether the program is ready to roll from where the cycle's transport stands (or, after the sync timeout,
/// rolls already). On the process thread before the process callback, again in each cycle until it is ready.
pub type SyncCallback = Arc<dyn Fn(&CycleScope<'_>) -> bool + Send + Sync>;

/// Completes the position of the next cycle: all but the frame. `true`: nothing that was counted before holds, since
/// this is the first call, or the position is of a start or a jump, or the program's last answer came too late;
/// otherwise the position holds that answer, but for the frame. On the process thread after the process callback.
pub type TimebaseCallback = Arc<dyn Fn(&CycleScope<'_>, &mut Position, bool) + Send + Sync>;

/// A callback, and which one it is among all that were ever set.
#[derive(Clone)]
pub(crate) struct Numbered<C> {
    /// From 1.
    pub(crate) serial: u32,
    pub(crate) callback: C,
}

/// The program's part in the transport, as the process thread knows it.
#[derive(Clone, Default)]
pub(crate) struct TransportCallbacks {
    pub(crate) sync: Option<Numbered<SyncCallback>>,
    pub(crate) timebase: Option<Numbered<TimebaseCallback>>,
}

impl std::fmt::Debug for TransportCallbacks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TransportCallbacks")
            .field("sync", &self.sync.is_some())
            .field("timebase", &self.timebase.is_some())
            .finish()
    }
}

impl TransportCallbacks {
    pub(crate) fn is_empty(&self) -> bool {
        self.sync.is_none() && self.timebase.is_none()
    }
}

/// What the process thread remembers of it from cycle to cycle.
#[derive(Debug, Default)]
pub(crate) struct TransportPart {
    /// The sync callback that has said to be ready once; 0: none has.
    ready_serial: u32,
    /// For which round.
    ready_round: u32,
    /// The server knows that this client needs time.
    needs_time: bool,
    /// The timebase callback's last call.
    led: Option<Led>,
}

/// A call of a timebase callback.
#[derive(Debug, Clone, Copy)]
struct Led {
    serial: u32,
    round: u32,
    /// What it made of the next cycle's position.
    stated: Position,
}

impl Led {
    /// Whether `transport` is what this call's answer led to. If not, a program that counts on from what it finds in
    /// the position finds nothing: some loop for ever over beats of no ticks.
    fn is_followed_by(&self, transport: &Transport) -> bool {
        self.round == transport.round && self.stated == transport.position
    }
}

impl TransportPart {
    /// Asks the program whether it is ready to roll, where that is to be known. Thread: cycle.
    #[inline]
    pub(crate) fn get_ready(&mut self, callbacks: &TransportCallbacks, core: &Core, info: CycleInfo) {
        if let Some(sync) = &callbacks.sync {
            self.ask(sync, core, info);
        } else if self.needs_time {
            core.link().own.note_quick();
            *self = Self { led: self.led, ..Self::default() };
        }
    }

    #[inline(never)]
    fn ask(&mut self, sync: &Numbered<SyncCallback>, core: &Core, info: CycleInfo) {
        let Some(transport) = core.link().engine.transport_in(info.cycle) else { return };
        let is_new = self.ready_serial != sync.serial;
        if !is_new && (!transport.asks || self.ready_round == transport.round) {
            return;
        }
        if !self.needs_time {
            self.needs_time = true;
            core.link().own.note_needs_time();
        }
        if (sync.callback)(&CycleScope::new(core, info)) {
            (self.ready_serial, self.ready_round) = (sync.serial, transport.round);
            core.link().own.note_ready(transport.round);
        }
    }

    /// Has the program complete the next cycle's position, if it is the timebase master. Thread: cycle.
    #[inline]
    pub(crate) fn lead(&mut self, callbacks: &TransportCallbacks, core: &Core, info: CycleInfo) {
        if let Some(timebase) = &callbacks.timebase {
            self.complete(timebase, core, info);
        }
    }

    #[inline(never)]
    fn complete(&mut self, timebase: &Numbered<TimebaseCallback>, core: &Core, info: CycleInfo) {
        let Some(transport) = core.link().engine.transport_in(info.cycle) else { return };
        let last = self.led.filter(|last| last.serial == timebase.serial);
        let new_position = !last.is_some_and(|last| last.is_followed_by(&transport));
        if transport.master != core.id || !(new_position || transport.state.passes()) {
            return;
        }
        let frame = transport.next_frame(info.quantum);
        let mut position = Position { frame, ..transport.position };
        (timebase.callback)(&CycleScope::new(core, info), &mut position, new_position);
        let stated = Position { frame, ..position }.checked();
        self.led = Some(Led { serial: timebase.serial, round: transport.round, stated });
        core.link().own.state_position(info.cycle, &stated);
    }
}

#[cfg(test)]
mod tests {
    use rt::transport::valid;

    use super::*;

    #[test]
    fn an_answer_is_counted_on_from_only_in_the_cycle_that_it_was_for_and_if_it_came_in_time() {
        let stated =
            Position { frame: 512, valid: valid::BBT, bar: 3, ticks_per_beat: 960.0, ..Position::default() };
        let led = Led { serial: 1, round: 4, stated };
        let followed =
            |position, round| led.is_followed_by(&Transport { position, round, ..Transport::default() });
        assert!(followed(stated, 4));
        assert!(!followed(stated, 5), "a jump");
        assert!(!followed(Position { frame: 768, ..stated }, 4), "a cycle later");
        assert!(!followed(Position::at(512), 4), "it came too late");
    }
}
