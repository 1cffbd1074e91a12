//! Whether the client is attached to a server, and waiting for one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use sys::socket::Connection;

use crate::Error;
use crate::locked::locked;
use crate::requests::Requests;

/// Limit of a call that waits for a server, however long the grace is.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The two sockets to a server.
#[derive(Debug, Clone)]
pub(crate) struct Sockets {
    pub(crate) requests: Arc<Requests>,
    /// Carries events to the client and acknowledgements to the server.
    pub(crate) events: Arc<Connection>,
}

#[derive(Debug)]
enum State {
    Attached(Sockets),
    /// The server is gone; another may replace it.
    Detached,
    /// No server will replace it.
    Over {
        /// For users.
        reason: String,
    },
}

/// A client's attachment to its current server.
#[derive(Debug)]
pub(crate) struct Attachment {
    state: Mutex<State>,
    changed: Condvar,
    over: AtomicBool,
}

impl Attachment {
    pub(crate) fn new(sockets: Sockets) -> Self {
        Self {
            state: Mutex::new(State::Attached(sockets)),
            changed: Condvar::new(),
            over: AtomicBool::new(false),
        }
    }

    /// Returns whether the server is gone for good. Thread: cycle.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Returns the sockets of the current server, if there is one.
    pub(crate) fn sockets(&self) -> Option<Sockets> {
        match &*locked(&self.state) {
            State::Attached(sockets) => Some(sockets.clone()),
            State::Detached | State::Over { .. } => None,
        }
    }

    /// Returns the request side of the current server. Without a server, waits for a replacement or
    /// the end of the grace.
    pub(crate) fn requests(&self) -> Result<Arc<Requests>, Error> {
        let end = Instant::now() + LONGEST_WAIT;
        let mut state = locked(&self.state);
        loop {
            match &*state {
                // If it has just ended, the service thread is about to notice.
                State::Attached(sockets) if !sockets.requests.is_gone() => {
                    return Ok(Arc::clone(&sockets.requests));
                }
                State::Over { reason } => return Err(Error::Ended(reason.clone())),
                State::Attached(_) | State::Detached => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::ServerGone);
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Detaches from the server and returns its sockets. Service thread.
    pub(crate) fn detach(&self) -> Option<Sockets> {
        let mut state = locked(&self.state);
        if !matches!(*state, State::Attached(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, State::Detached) {
            State::Attached(sockets) => {
                sockets.requests.note_gone();
                Some(sockets)
            }
            State::Detached | State::Over { .. } => None,
        }
    }

    /// Attaches to another server if `holds`, evaluated under the lock, returns true: the announced
    /// state must still be current. Service thread.
    pub(crate) fn attach(&self, sockets: &Sockets, holds: impl FnOnce() -> bool) -> bool {
        let mut state = locked(&self.state);
        if !holds() {
            return false;
        }
        *state = State::Attached(sockets.clone());
        self.changed.notify_all();
        true
    }

    /// Ends the attachment for good, for a `reason` that calls return from then on, and returns the
    /// sockets of the last server.
    pub(crate) fn end(&self, reason: &str) -> Option<Sockets> {
        let left = self.detach();
        *locked(&self.state) = State::Over { reason: reason.to_owned() };
        self.over.store(true, Ordering::Release);
        self.changed.notify_all();
        left
    }

    /// Runs `change` under the lock, and so either before or after a replacement server is informed
    /// of the client's state.
    pub(crate) fn with_state_locked<R>(&self, change: impl FnOnce() -> R) -> R {
        let _state = locked(&self.state);
        change()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets() -> (Sockets, [Connection; 2]) {
        let ((requests, server), (events, server_events)) =
            (Connection::pair().unwrap(), Connection::pair().unwrap());
        (
            Sockets { requests: Arc::new(Requests::new(requests)), events: Arc::new(events) },
            [server, server_events],
        )
    }

    #[test]
    fn requests_wait_for_the_next_server_until_the_grace_is_over() {
        let (first, _server) = sockets();
        let attachment = Arc::new(Attachment::new(first.clone()));
        assert!(attachment.requests().is_ok());
        attachment.detach();
        assert!(attachment.sockets().is_none() && first.requests.is_gone());
        let waiting = {
            let attachment = Arc::clone(&attachment);
            std::thread::spawn(move || attachment.requests())
        };
        let (second, _second_server) = sockets();
        assert!(
            !attachment.attach(&second, || false),
            "the state announced to the server is no longer true"
        );
        assert!(attachment.attach(&second, || true));
        assert!(Arc::ptr_eq(&waiting.join().unwrap().unwrap(), &second.requests));
        attachment.end("a program asked for it");
        let ended = attachment.requests().expect_err("there is none");
        assert_eq!(ended.to_string(), "the server is gone: a program asked for it");
        assert!(attachment.is_over());
    }
}
