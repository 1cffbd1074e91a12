//! The transport, and freewheel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proto::request::Request;
use rt::shm::{EngineSegment, TransportRequest};
use rt::transport::{Position, Transport};
use sys::clock::{now_ns, sleep_until};

use crate::locked::locked;
use crate::process::{
    Numbered, SyncCallback, TimebaseCallback, TransportCallbacks, current_cycle, is_beginning,
};
use crate::session::Core;
use crate::{Error, Session};

/// How long a callback that was replaced is waited for, and how often it is looked at: it may be running.
const REPLACED_NS: u64 = 500_000_000;
const LOOK_NS: u64 = 500_000;

/// The transport of the newest cycle.
pub(crate) fn newest(engine: &EngineSegment) -> Option<Transport> {
    engine.transport_in(engine.cycle())
}

/// Requests are decided with the next cycle; those of a client in the graph take no lock and no system call.
impl Session {
    /// The transport in this cycle; on other threads than process threads, in the newest. `None` in a forked child.
    /// Thread: any.
    pub fn transport(&self) -> Option<Transport> {
        let engine = self.engine()?;
        match current_cycle() {
            Some(info) => engine.transport_in(info.cycle),
            None => newest(engine),
        }
    }

    /// The frame of the piece that passes now, estimated; 0 in a forked child. Thread: any.
    pub fn transport_frame(&self) -> u32 {
        let transport = self.transport().zip(self.info());
        transport
            .map_or(0, |(transport, info)| transport.frame_at(now_ns(), info.quantum, info.sample_rate_hz))
    }

    /// Has the piece roll, once all clients that need time are ready. Thread: any.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::Closed`], [`Error::ServerGone`]; those of [`order`](Self::order) for a client
    /// without a process thread.
    pub fn start_transport(&self) -> Result<(), Error> {
        self.ask(TransportRequest { roll: Some(true), ..TransportRequest::default() })
    }

    /// Has the piece stand still. Thread: any.
    ///
    /// # Errors
    /// Those of [`start_transport`](Self::start_transport).
    pub fn stop_transport(&self) -> Result<(), Error> {
        self.ask(TransportRequest { roll: Some(false), ..TransportRequest::default() })
    }

    /// Goes to a place in the piece; if it rolls, it starts anew from there. Thread: any.
    ///
    /// # Errors
    /// Those of [`start_transport`](Self::start_transport); [`Error::TransportBusy`].
    pub fn locate_transport(&self, position: &Position) -> Result<(), Error> {
        self.ask(TransportRequest { position: Some(*position), ..TransportRequest::default() })
    }

    /// Sets how long the transport waits for clients that need time, in µs. Thread: any.
    ///
    /// # Errors
    /// Those of [`start_transport`](Self::start_transport).
    pub fn set_sync_timeout(&self, timeout_us: u64) -> Result<(), Error> {
        self.ask(TransportRequest { sync_timeout_us: Some(timeout_us), ..TransportRequest::default() })
    }

    fn ask(&self, request: TransportRequest) -> Result<(), Error> {
        let core = self.core();
        core.check_fork()?;
        if core.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        // No request is kept for a server to come: the program asked for now.
        if core.is_over() || core.links.is_cut() {
            return Err(Error::ServerGone);
        }
        let TransportRequest { roll, position, sync_timeout_us } = request;
        if core.process_thread().is_none() {
            // The driver does not look at the page of a client that is in no cycle.
            let position = position.map(|position| position.to_words());
            return self.order(Request::Transport { roll, position, sync_timeout_us });
        }
        let requests = core.link().own.transport();
        if position.is_some_and(|position| !requests.ask_position(&position)) {
            return Err(Error::TransportBusy);
        }
        roll.into_iter().for_each(|roll| requests.ask_to_roll(roll));
        sync_timeout_us.into_iter().for_each(|timeout_us| requests.ask_sync_timeout(timeout_us));
        Ok(())
    }

    /// Makes this a client that the transport waits for before it rolls, or (`None`) no more. Also on an active
    /// client; when it returns, a callback set before is not called any more, unless it hangs.
    ///
    /// # Errors
    /// [`Error::InCycle`], [`Error::Closed`], [`Error::Forked`].
    pub fn set_sync_callback(&self, callback: Option<SyncCallback>) -> Result<(), Error> {
        self.core().check_request()?;
        let sync = callback.map(|callback| Numbered { serial: next_serial(), callback });
        self.core().change_transport_callbacks(|callbacks| callbacks.sync = sync)
    }

    /// Makes this client the one that completes positions, with bar and beat or whatever it knows. With `conditional`,
    /// only if there is none. Also on an active client.
    ///
    /// # Errors
    /// [`RequestError::TimebaseTaken`](crate::RequestError::TimebaseTaken), and those of [`order`](Self::order).
    pub fn take_timebase(&self, conditional: bool, callback: TimebaseCallback) -> Result<(), Error> {
        self.order(Request::TakeTimebase { conditional })?;
        let timebase = Numbered { serial: next_serial(), callback };
        self.core().change_transport_callbacks(|callbacks| callbacks.timebase = Some(timebase))
    }

    /// Gives the timebase back.
    ///
    /// # Errors
    /// [`RequestError::NotTimebase`](crate::RequestError::NotTimebase), and those of [`order`](Self::order).
    pub fn release_timebase(&self) -> Result<(), Error> {
        self.order(Request::ReleaseTimebase)?;
        self.core().change_transport_callbacks(|callbacks| callbacks.timebase = None)
    }

    /// Has cycles follow each other as fast as the graph can, without the driver, or go by its clock again. Returns
    /// when they do and all clients have been told.
    ///
    /// # Errors
    /// Those of [`order`](Self::order); refused if it is so already.
    pub fn set_freewheel(&self, on: bool) -> Result<(), Error> {
        self.order(Request::SetFreewheel { on })
    }

    /// Whether process threads are real-time now: in freewheel, none is. Thread: any.
    pub fn is_realtime(&self) -> bool {
        self.engine().is_some_and(|engine| engine.flags().realtime && !engine.freewheels())
    }
}

/// Tells each callback from all others of this process.
fn next_serial() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only that they differ matters.
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

impl Core {
    /// Changes what the process thread calls, and waits in bounded time until it does.
    fn change_transport_callbacks(
        self: &Arc<Self>,
        change: impl FnOnce(&mut TransportCallbacks),
    ) -> Result<(), Error> {
        locked(&self.tables).change(None, |tables| {
            change(&mut tables.transport);
            true
        });
        self.join_cycles()?;
        self.await_tables();
        Ok(())
    }

    /// Waits in bounded time until the process thread goes by the newest tables. One that begins does before its first cycle.
    pub(crate) fn await_tables(&self) {
        let deadline_ns = now_ns() + REPLACED_NS;
        while self.settle_tables() && !is_beginning(self) && now_ns() < deadline_ns {
            sleep_until(now_ns() + LOOK_NS);
        }
    }
}
