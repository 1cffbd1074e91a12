//! The transport, and freewheeling.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proto::request::Request;
use rt::shm::{EngineSegment, TransportRequest};
use rt::transport::{Position, Transport};
use sys::clock::{now_ns, sleep_until};

use crate::locked::locked;
use crate::process::{
    NumberedCallback, SyncCallback, TimebaseCallback, TransportCallbacks, current_cycle,
    is_initializing,
};
use crate::session::Core;
use crate::{Error, Requester, Session};

/// How long to wait for a replaced callback, which may be running, and how often to check.
const REPLACED_NS: u64 = 500_000_000;
const POLL_NS: u64 = 500_000;

/// Returns the transport of the newest cycle.
pub(crate) fn newest(engine: &EngineSegment) -> Option<Transport> {
    engine.transport_in(engine.cycle())
}

/// Transport requests take effect in the next cycle. For a client with a process thread they take
/// no lock and no system call.
impl Session {
    /// Returns the transport in the calling process thread's cycle; on other threads, in the
    /// newest. `None` in a forked child. Thread: any.
    pub fn transport(&self) -> Option<Transport> {
        let engine = self.engine()?;
        match current_cycle() {
            Some(info) => engine.transport_in(info.cycle),
            None => newest(engine),
        }
    }

    /// Returns the estimated current frame of the transport; 0 in a forked child. Thread: any.
    pub fn transport_frame(&self) -> u32 {
        let transport = self.transport().zip(self.info());
        transport.map_or(0, |(transport, info)| {
            transport.frame_at(now_ns(), info.quantum, info.sample_rate_hz)
        })
    }

    /// Starts the transport once all slow-sync clients are ready. Thread: any.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::Closed`], [`Error::ServerGone`]; those of [`Requester`] for a
    /// client without a process thread.
    pub fn start_transport(&self) -> Result<(), Error> {
        self.request_transport(TransportRequest { roll: Some(true), ..TransportRequest::default() })
    }

    /// Stops the transport. Thread: any.
    ///
    /// # Errors
    /// See [`start_transport`](Self::start_transport).
    pub fn stop_transport(&self) -> Result<(), Error> {
        self.request_transport(TransportRequest {
            roll: Some(false),
            ..TransportRequest::default()
        })
    }

    /// Moves the transport. If it rolls, it starts again from there. Thread: any.
    ///
    /// # Errors
    /// See [`start_transport`](Self::start_transport); [`Error::TransportBusy`].
    pub fn locate_transport(&self, position: &Position) -> Result<(), Error> {
        self.request_transport(TransportRequest {
            position: Some(*position),
            ..TransportRequest::default()
        })
    }

    /// Sets how long the transport waits for slow-sync clients, in µs. Thread: any.
    ///
    /// # Errors
    /// See [`start_transport`](Self::start_transport).
    pub fn set_sync_timeout(&self, timeout_us: u64) -> Result<(), Error> {
        self.request_transport(TransportRequest {
            sync_timeout_us: Some(timeout_us),
            ..TransportRequest::default()
        })
    }

    fn request_transport(&self, request: TransportRequest) -> Result<(), Error> {
        let core = self.core();
        core.check_fork()?;
        if core.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        // A request is not kept for a later server: the program meant the present.
        if core.is_over() || core.memories.is_detached() {
            return Err(Error::ServerGone);
        }
        let TransportRequest { roll, position, sync_timeout_us } = request;
        if core.process_thread().is_none() {
            // The driver does not poll the page of a client without a process thread.
            let position = position.map(|position| position.to_words());
            return self.request(Request::Transport { roll, position, sync_timeout_us });
        }
        let requests = core.memory().own.transport();
        if position.is_some_and(|position| !requests.request_position(&position)) {
            return Err(Error::TransportBusy);
        }
        roll.into_iter().for_each(|roll| requests.request_roll(roll));
        sync_timeout_us
            .into_iter()
            .for_each(|timeout_us| requests.request_sync_timeout(timeout_us));
        Ok(())
    }

    /// Sets the sync callback, for which the transport waits before it rolls, or removes it. Also
    /// allowed on an active client. When this returns, a previous callback is not called anymore,
    /// unless it hangs.
    ///
    /// # Errors
    /// [`Error::InCycle`], [`Error::Closed`], [`Error::Forked`].
    pub fn set_sync_callback(&self, callback: Option<SyncCallback>) -> Result<(), Error> {
        self.core().check_request()?;
        let sync = callback.map(|callback| NumberedCallback { serial: next_serial(), callback });
        self.core().change_transport_callbacks(|callbacks| callbacks.sync = sync)
    }

    /// Makes this client the timebase master, which completes positions with bar and beat. With
    /// `conditional`, only if there is none. Also allowed on an active client.
    ///
    /// # Errors
    /// [`RequestError::TimebaseTaken`](crate::RequestError::TimebaseTaken), and those of
    /// [`Requester`].
    pub fn take_timebase(
        &self,
        conditional: bool,
        callback: TimebaseCallback,
    ) -> Result<(), Error> {
        self.request(Request::TakeTimebase { conditional })?;
        let timebase = NumberedCallback { serial: next_serial(), callback };
        self.core().change_transport_callbacks(|callbacks| callbacks.timebase = Some(timebase))
    }

    /// Stops being the timebase master.
    ///
    /// # Errors
    /// [`RequestError::NotTimebase`](crate::RequestError::NotTimebase), and those of [`Requester`].
    pub fn release_timebase(&self) -> Result<(), Error> {
        self.request(Request::ReleaseTimebase)?;
        self.core().change_transport_callbacks(|callbacks| callbacks.timebase = None)
    }

    /// Starts or stops freewheeling, in which cycles follow each other as fast as the graph can
    /// run. Returns when the change is in effect and all clients have been notified.
    ///
    /// # Errors
    /// See [`Requester`]; refused if there is nothing to change.
    pub fn set_freewheel(&self, on: bool) -> Result<(), Error> {
        self.request(Request::SetFreewheel { on })
    }

    /// Returns whether process threads are real-time at present: they are not while freewheeling.
    /// Thread: any.
    pub fn is_realtime(&self) -> bool {
        self.engine().is_some_and(|engine| engine.flags().realtime && !engine.freewheels())
    }
}

/// Returns a number that no other callback of this process has.
fn next_serial() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // Relaxed: the numbers only have to differ.
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

impl Core {
    /// Changes the transport callbacks and waits, in bounded time, until the process thread uses
    /// them.
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

    /// Waits in bounded time until the process thread uses the newest tables. A process thread that
    /// is being initialized takes them before its first cycle.
    pub(crate) fn await_tables(&self) {
        let deadline_ns = now_ns() + REPLACED_NS;
        while self.settle_tables() && !is_initializing(self) && now_ns() < deadline_ns {
            sleep_until(now_ns() + POLL_NS);
        }
    }
}
