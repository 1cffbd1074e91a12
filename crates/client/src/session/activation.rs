//! Joining and leaving the cycles.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::request::{Activation, Request};

use super::core::{Activations, Core};
use crate::Error;
use crate::locked::locked;
use crate::notice_queue::Notice;
use crate::process::{self, Body, ProcessThread, Start};

impl Core {
    /// Implements `Session::activate`.
    pub(crate) fn activate(self: &Arc<Self>) -> Result<(), Error> {
        self.check_request()?;
        self.check_not_initializing()?;
        let mut activations = locked(&self.activations);
        if self.is_active() {
            return Ok(());
        }
        // Fails before anything has been started.
        self.attachment.requests()?;
        activations.count = activations.count.wrapping_add(1);
        let thread = self.start_process_thread(activations.count)?;
        let activation = self.describe(thread.as_ref());
        // Before the server announces the client's own ports.
        self.notify(Notice::Activated);
        self.active.store(true, Ordering::Release);
        let activated = self.announce_activation(activation);
        activations.thread = thread;
        if activated.is_err() {
            self.attachment.with_state_locked(|| *locked(&self.announced_activation) = None);
            self.stop_process_thread(&mut activations);
        }
        activated
    }

    /// Starts the process thread of an active client that had none.
    pub(crate) fn join_cycles(self: &Arc<Self>) -> Result<(), Error> {
        if process::is_initializing(self) {
            // The thread that is being initialized joins the cycles.
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
        self.announce_activation(self.describe(activations.thread.as_ref()))
    }

    /// Fails on a thread that an activation waits for.
    fn check_not_initializing(&self) -> Result<(), Error> {
        if process::is_initializing(self) { Err(Error::ThreadInit) } else { Ok(()) }
    }

    /// Announces the activation to the server, and stores it for a replacement server.
    fn announce_activation(&self, activation: Activation) -> Result<(), Error> {
        self.attachment
            .with_state_locked(|| *locked(&self.announced_activation) = Some(activation));
        self.request(&Request::Activate(activation))
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

    fn start_process_thread(
        self: &Arc<Self>,
        activation: u32,
    ) -> Result<Option<ProcessThread>, Error> {
        let body = {
            let callbacks = locked(&self.callbacks);
            let function = callbacks.process_thread.clone().map(Body::Function);
            let body = function.or_else(|| callbacks.process.clone().map(Body::Process));
            let transport = || !locked(&self.tables).current().transport.is_empty();
            body.or_else(|| transport().then_some(Body::Transport))
        };
        let Some(body) = body else { return Ok(None) };
        let tables = locked(&self.tables).start();
        let started =
            ProcessThread::start(Start { core: Arc::clone(self), body, tables, activation });
        if started.is_err() {
            locked(&self.tables).stop();
        }
        started.map(Some)
    }

    /// Implements `Session::deactivate`.
    pub(crate) fn deactivate(&self) -> Result<(), Error> {
        self.check_request()?;
        self.check_not_initializing()?;
        let mut activations = locked(&self.activations);
        self.deactivate_locked(&mut activations)
    }

    /// The process thread of activation `activation` has ended by itself. Notification thread.
    pub(crate) fn process_ended(&self, activation: u32) {
        let mut activations = locked(&self.activations);
        if activations.count == activation {
            // If this fails, the server notices by itself.
            let _ = self.deactivate_locked(&mut activations);
        }
    }

    fn deactivate_locked(&self, activations: &mut Activations) -> Result<(), Error> {
        if !self.is_active() {
            return Ok(());
        }
        // Before anything else: a replacement server must learn that the client is inactive.
        self.attachment.with_state_locked(|| *locked(&self.announced_activation) = None);
        // Before the thread ends, so that no cycle waits for it.
        let deactivated = match self.attachment.sockets() {
            Some(sockets) => sockets.requests.request(Request::Deactivate),
            None => Ok(()),
        };
        self.stop_process_thread(activations);
        match deactivated {
            // A replacement server has no active client.
            Err(Error::ServerGone | Error::Ended(_)) => Ok(()),
            decided => decided,
        }
    }

    /// Ends the process thread.
    fn stop_process_thread(&self, activations: &mut Activations) {
        self.active.store(false, Ordering::Release);
        self.process_thread.store(0, Ordering::Release);
        if let Some(thread) = activations.thread.take() {
            thread.stop(self);
        }
        locked(&self.tables).stop();
    }
}
