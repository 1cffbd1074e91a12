//! The client's part in the transport: the sync callback before the process callback, the timebase
//! callback after it.

use std::sync::Arc;

use rt::shm::CycleInfo;
use rt::transport::{Position, Transport};

use super::CycleScope;
use crate::session::Core;

/// Returns whether the program is ready to roll from the cycle's transport position. After the sync
/// timeout the transport rolls regardless. Called on the process thread before the process
/// callback, in each cycle until it returns true.
pub type SyncCallback = Arc<dyn Fn(&CycleScope<'_>) -> bool + Send + Sync>;

/// Completes the position of the next cycle, except for its frame. The flag is true if the given
/// position does not continue the program's previous one: this is the first call, the transport was
/// started or moved, or the previous result came too late. Otherwise the position holds the
/// previous result with a new frame. Called on the process thread after the process callback.
pub type TimebaseCallback = Arc<dyn Fn(&CycleScope<'_>, &mut Position, bool) + Send + Sync>;

/// A callback with a number that no other one in this process has.
#[derive(Clone)]
pub(crate) struct NumberedCallback<C> {
    /// Counts from 1.
    pub(crate) serial: u32,
    pub(crate) callback: C,
}

/// The program's transport callbacks, as the process thread knows them.
#[derive(Clone, Default)]
pub(crate) struct TransportCallbacks {
    pub(crate) sync: Option<NumberedCallback<SyncCallback>>,
    pub(crate) timebase: Option<NumberedCallback<TimebaseCallback>>,
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

/// The process thread's memory of the transport from cycle to cycle.
#[derive(Debug, Default)]
pub(crate) struct TransportPart {
    /// Serial of the sync callback that has reported to be ready; 0: none.
    ready_serial: u32,
    /// Transport round for which it was ready.
    ready_round: u32,
    /// The server knows that this client is slow to sync.
    needs_time: bool,
    /// The last call of the timebase callback.
    last_call: Option<TimebaseCall>,
}

/// One call of a timebase callback.
#[derive(Debug, Clone, Copy)]
struct TimebaseCall {
    serial: u32,
    round: u32,
    /// The result: the position of the next cycle.
    stated: Position,
}

impl TimebaseCall {
    /// Returns whether `transport` holds the result of this call. If it does not, the callback's
    /// flag must be set for programs that count on from the given position: some loop forever over
    /// beats without ticks.
    fn led_to(&self, transport: &Transport) -> bool {
        self.round == transport.round && self.stated == transport.position
    }
}

impl TransportPart {
    /// Calls the sync callback if the transport waits for clients. Thread: cycle.
    #[inline]
    pub(crate) fn call_sync(
        &mut self,
        callbacks: &TransportCallbacks,
        core: &Core,
        info: CycleInfo,
    ) {
        if let Some(sync) = &callbacks.sync {
            self.call_sync_callback(sync, core, info);
        } else if self.needs_time {
            core.memory().own.note_sync_not_needed();
            *self = Self { last_call: self.last_call, ..Self::default() };
        }
    }

    #[inline(never)]
    fn call_sync_callback(
        &mut self,
        sync: &NumberedCallback<SyncCallback>,
        core: &Core,
        info: CycleInfo,
    ) {
        let Some(transport) = core.memory().engine.transport_in(info.cycle) else { return };
        let is_new = self.ready_serial != sync.serial;
        if !is_new && (!transport.asks || self.ready_round == transport.round) {
            return;
        }
        if !self.needs_time {
            self.needs_time = true;
            core.memory().own.note_sync_pending();
        }
        if (sync.callback)(&CycleScope::new(core, info)) {
            (self.ready_serial, self.ready_round) = (sync.serial, transport.round);
            core.memory().own.note_sync_ready(transport.round);
        }
    }

    /// Calls the timebase callback if this client is the timebase master. Thread: cycle.
    #[inline]
    pub(crate) fn call_timebase(
        &mut self,
        callbacks: &TransportCallbacks,
        core: &Core,
        info: CycleInfo,
    ) {
        if let Some(timebase) = &callbacks.timebase {
            self.call_timebase_callback(timebase, core, info);
        }
    }

    #[inline(never)]
    fn call_timebase_callback(
        &mut self,
        timebase: &NumberedCallback<TimebaseCallback>,
        core: &Core,
        info: CycleInfo,
    ) {
        let Some(transport) = core.memory().engine.transport_in(info.cycle) else { return };
        let last = self.last_call.filter(|last| last.serial == timebase.serial);
        let new_position = !last.is_some_and(|last| last.led_to(&transport));
        if transport.master != core.id || !(new_position || transport.state.passes()) {
            return;
        }
        let frame = transport.next_frame(info.quantum);
        let mut position = Position { frame, ..transport.position };
        (timebase.callback)(&CycleScope::new(core, info), &mut position, new_position);
        let stated = Position { frame, ..position }.checked();
        self.last_call =
            Some(TimebaseCall { serial: timebase.serial, round: transport.round, stated });
        core.memory().own.publish_timebase(info.cycle, &stated);
    }
}

#[cfg(test)]
mod tests {
    use rt::transport::valid;

    use super::*;

    #[test]
    fn a_timebase_answer_is_valid_only_for_its_own_cycle() {
        let stated = Position {
            frame: 512,
            valid: valid::BBT,
            bar: 3,
            ticks_per_beat: 960.0,
            ..Position::default()
        };
        let call = TimebaseCall { serial: 1, round: 4, stated };
        let followed =
            |position, round| call.led_to(&Transport { position, round, ..Transport::default() });
        assert!(followed(stated, 4));
        assert!(!followed(stated, 5), "a jump");
        assert!(!followed(Position { frame: 768, ..stated }, 4), "a cycle later");
        assert!(!followed(Position::at(512), 4), "it came too late");
    }
}
