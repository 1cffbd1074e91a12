//! Joining and leaving the cycles.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::request::{Activation, Request};

use super::core::Core;
use crate::Error;
use crate::locked::locked;
use crate::notification::Notice;
use crate::process::{self, Body, ProcessThread, Start};

/// What belongs to the time between an activation and its end.
#[derive(Debug, Default)]
pub(crate) struct Activations {
    /// Counts them, so that the end of one is not taken for that of another.
    count: u32,
    thread: Option<ProcessThread>,
}

impl Core {
    /// See `Session::activate`.
    pub(crate) fn activate(self: &Arc<Self>) -> Result<(), Error> {
        self.check_request()?;
        self.check_begun()?;
        let mut activations = locked(&self.activations);
        if self.is_active() {
            return Ok(());
        }
        // Before anything is begun for it.
        self.attachment.requests()?;
        activations.count = activations.count.wrapping_add(1);
        let thread = self.start_process_thread(activations.count)?;
        let activation = self.describe(thread.as_ref());
        // Before the server tells of the client's own ports.
        self.notify(Notice::Activated);
        self.active.store(true, Ordering::Release);
        let activated = self.state(activation);
        activations.thread = thread;
        if activated.is_err() {
            self.attachment.in_between(|| *locked(&self.stated) = None);
            self.leave(&mut activations);
        }
        activated
    }

    /// An active client that had nothing to do in cycles has now.
    pub(crate) fn join_cycles(self: &Arc<Self>) -> Result<(), Error> {
        if process::is_beginning(self) {
            // It joins them right now.
            return Ok(());
        }
        let mut activations = locked(&self.activations);
        if !self.is_active() || activations.thread.is_some() {
            return Ok(());
        }
        activations.thread = self.start_process_thread(activations.count)?;
        if activations.thread.is_none() {
            return Ok(());
        }
        self.state(self.describe(activations.thread.as_ref()))
    }

    /// Whether the calling thread may wait for an activation.
    fn check_begun(&self) -> Result<(), Error> {
        if process::is_beginning(self) { Err(Error::Beginning) } else { Ok(()) }
    }

    /// Tells the server, and remembers it for one that takes its place.
    fn state(&self, activation: Activation) -> Result<(), Error> {
        self.attachment.in_between(|| *locked(&self.stated) = Some(activation));
        self.order(&Request::Activate(activation))
    }

    fn describe(&self, thread: Option<&ProcessThread>) -> Activation {
        let process_thread = thread.map(|thread| thread.id);
        self.process_thread.store(process_thread.unwrap_or(0), Ordering::Release);
        let callbacks = locked(&self.callbacks);
        Activation {
            process_thread,
            latency_callback: callbacks.latency.is_some(),
            quantum_callback: callbacks.quantum.is_some(),
            freewheel_callback: callbacks.freewheel.is_some(),
            session_callback: callbacks.session.is_some(),
            interests: callbacks.interests(),
        }
    }

    fn start_process_thread(self: &Arc<Self>, activation: u32) -> Result<Option<ProcessThread>, Error> {
        let body = {
            let callbacks = locked(&self.callbacks);
            let function = callbacks.process_thread.clone().map(Body::Function);
            let body = function.or_else(|| callbacks.process.clone().map(Body::Process));
            let transport = || !locked(&self.tables).current().transport.is_empty();
            body.or_else(|| transport().then_some(Body::Transport))
        };
        let Some(body) = body else { return Ok(None) };
        // As late as possible, in front of whatever handlers the program has installed.
        sys::write_faults::serve();
        let tables = locked(&self.tables).start();
        let started = ProcessThread::start(Start { core: Arc::clone(self), body, tables, activation });
        if started.is_err() {
            locked(&self.tables).stop();
        }
        started.map(Some)
    }

    /// See `Session::deactivate`.
    pub(crate) fn deactivate(&self) -> Result<(), Error> {
        self.check_request()?;
        self.check_begun()?;
        let mut activations = locked(&self.activations);
        self.deactivate_locked(&mut activations)
    }

    /// The process thread of activation `activation` has left by itself. Notification thread.
    pub(crate) fn process_ended(&self, activation: u32) {
        let mut activations = locked(&self.activations);
        if activations.count == activation {
            // The server finds out by itself if it cannot be told.
            let _ = self.deactivate_locked(&mut activations);
        }
    }

    fn deactivate_locked(&self, activations: &mut Activations) -> Result<(), Error> {
        if !self.is_active() {
            return Ok(());
        }
        // A server that is told of the client from now on is told that it is inactive.
        self.attachment.in_between(|| *locked(&self.stated) = None);
        // First, so that no cycle waits for the thread when it leaves.
        let deactivated = match self.attachment.sockets() {
            Some(sockets) => sockets.requests.order(Request::Deactivate),
            None => Ok(()),
        };
        self.leave(activations);
        match deactivated {
            // Whichever server comes knows of no active client.
            Err(Error::ServerGone) => Ok(()),
            decided => decided,
        }
    }

    /// Ends the process thread.
    fn leave(&self, activations: &mut Activations) {
        self.active.store(false, Ordering::Release);
        self.process_thread.store(0, Ordering::Release);
        if let Some(thread) = activations.thread.take() {
            thread.stop(self);
        }
        locked(&self.tables).stop();
    }
}
