//! Whether the client has a server, and what those who need one do meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use sys::socket::Connection;

use crate::Error;
use crate::locked::locked;
use crate::requests::Requests;

/// A call that needs a server waits so long for one at most, however long the grace is.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The sockets to a server.
#[derive(Debug, Clone)]
pub(crate) struct Sockets {
    pub(crate) requests: Arc<Requests>,
    /// Events in, answers out.
    pub(crate) events: Arc<Connection>,
}

#[derive(Debug)]
enum State {
    Attached(Sockets),
    /// The server is gone, and another may come.
    Detached,
    /// None will come.
    Over,
}

/// A client's connection to whichever server there is.
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

    /// Whether there is no server and none will come. Thread: cycle.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// The sockets, if there is a server now.
    pub(crate) fn sockets(&self) -> Option<Sockets> {
        match &*locked(&self.state) {
            State::Attached(sockets) => Some(sockets.clone()),
            State::Detached | State::Over => None,
        }
    }

    /// The requests to a server: if there is none, waits until one is there or the grace is over.
    pub(crate) fn requests(&self) -> Result<Arc<Requests>, Error> {
        let end = Instant::now() + LONGEST_WAIT;
        let mut state = locked(&self.state);
        loop {
            match &*state {
                // One that ended just now will be found to be gone by the service thread.
                State::Attached(sockets) if !sockets.requests.is_gone() => {
                    return Ok(Arc::clone(&sockets.requests));
                }
                State::Over => return Err(Error::ServerGone),
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

    /// The server is gone; gives the sockets that it left. Service thread.
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
            State::Detached | State::Over => None,
        }
    }

    /// Another server is there; `holds` says, with nobody in between, whether what it was told is still true.
    /// Service thread.
    pub(crate) fn attach(&self, sockets: &Sockets, holds: impl FnOnce() -> bool) -> bool {
        let mut state = locked(&self.state);
        if !holds() {
            return false;
        }
        *state = State::Attached(sockets.clone());
        self.changed.notify_all();
        true
    }

    /// There is no server any more and none will come; gives the sockets that it left.
    pub(crate) fn end(&self) -> Option<Sockets> {
        let left = self.detach();
        *locked(&self.state) = State::Over;
        self.over.store(true, Ordering::Release);
        self.changed.notify_all();
        left
    }

    /// Does `change` while no server is being told what the client is like: before it has been, or after.
    pub(crate) fn in_between<R>(&self, change: impl FnOnce() -> R) -> R {
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
    fn who_needs_a_server_waits_for_the_next_one_and_fails_when_none_will_come() {
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
        assert!(!attachment.attach(&second, || false), "what the server was told is not true any more");
        assert!(attachment.attach(&second, || true));
        assert!(Arc::ptr_eq(&waiting.join().unwrap().unwrap(), &second.requests));
        attachment.end();
        assert!(matches!(attachment.requests(), Err(Error::ServerGone)));
        assert!(attachment.is_over());
    }
}
