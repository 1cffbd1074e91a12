//! The wait for a server that takes the place of one that has died.

use std::sync::Arc;
use std::time::Duration;

use sys::clock::now_ns;

use super::StreamConnection;
use super::server::StreamServer;
use crate::Error;
use crate::service::RETRY_NS;

/// The next server of the same name, for streams of one that has died. The program looks for it
/// when that is [due](Self::due_ns), and sleeps in between.
#[derive(Debug)]
pub struct AwaitedServer {
    gone: Arc<StreamServer>,
    gone_ns: u64,
    search: Search,
    /// What the last server that was there has answered.
    refusal: Option<String>,
}

/// When a server is looked for, and when no longer. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Search {
    grace_ns: u64,
    until_ns: u64,
    due_ns: u64,
}

impl Search {
    /// Looks for a server from `now_ns` on.
    fn begin(grace_ns: u64, now_ns: u64) -> Self {
        Self { grace_ns, until_ns: now_ns.saturating_add(grace_ns), due_ns: now_ns }
    }

    /// Notes an attempt in vain; returns whether there is another one.
    fn failed(&mut self, now_ns: u64) -> bool {
        self.due_ns = now_ns.saturating_add(RETRY_NS);
        now_ns < self.until_ns
    }
}

impl StreamConnection {
    /// Returns the wait for the next server of this one's name, once this one is gone, which the
    /// program has noticed at `now_ns` (`CLOCK_MONOTONIC`); `None` if none is to be waited for: it
    /// has stopped in order, or was started without a grace period.
    #[must_use]
    pub fn await_next(&self, now_ns: u64) -> Option<AwaitedServer> {
        let gone = self.server();
        let grace_ns = u64::try_from(gone.grace().as_nanos()).unwrap_or(u64::MAX);
        if gone.has_stopped() || grace_ns == 0 {
            return None;
        }
        gone.requests.note_gone();
        let (gone, search) = (Arc::clone(gone), Search::begin(grace_ns, now_ns));
        Some(AwaitedServer { gone, gone_ns: now_ns, search, refusal: None })
    }
}

impl StreamConnection {
    /// Notes that the server is gone, so that all requests fail at once. Returns for how long its
    /// programs wait for the next one; it may have stopped in order. For programs that look for it
    /// themselves, and return one stream after the other.
    #[must_use]
    pub fn note_gone(&self) -> Duration {
        self.server().requests.note_gone();
        self.server().grace()
    }
}

impl AwaitedServer {
    /// Returns when the program noticed that its server was gone, `CLOCK_MONOTONIC` ns.
    #[must_use]
    pub fn gone_ns(&self) -> u64 {
        self.gone_ns
    }

    /// Returns when to look next, `CLOCK_MONOTONIC` ns.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.search.due_ns
    }

    /// Looks once for a server and has `take_back` return the program's streams to it, in bounded
    /// time; returns the connection, or `None` if there is no server yet, or it cannot take them
    /// back at the moment.
    ///
    /// # Errors
    /// [`Error::NotReplaced`] at the end of the grace period; what `take_back` fails with if that
    /// does not pass.
    pub fn attempt(
        &mut self,
        take_back: impl FnOnce(&StreamConnection) -> Result<(), Error>,
    ) -> Result<Option<StreamConnection>, Error> {
        let mut was_there = false;
        let attempt = self.find().and_then(|connection| {
            was_there = true;
            take_back(&connection).map(|()| connection)
        });
        let error = match attempt {
            Ok(connection) => return Ok(Some(connection)),
            Err(error) if error.may_pass() => error,
            Err(error) => return Err(error),
        };
        let now_ns = now_ns();
        if was_there && matches!(error, Error::ServerGone) {
            // It has died as well: the next one has as much time.
            self.search = Search::begin(self.search.grace_ns, now_ns);
        } else if was_there {
            self.refusal = Some(error.to_string());
        }
        if self.search.failed(now_ns) {
            return Ok(None);
        }
        let seconds = self.gone.grace().as_secs_f32();
        Err(Error::NotReplaced { seconds, refusal: self.refusal.take() })
    }

    fn find(&self) -> Result<StreamConnection, Error> {
        let connection = StreamConnection::connect(Arc::clone(self.gone.address()))?;
        if connection.server().instance() == self.gone.instance() {
            let reason = "it is the same one, and has closed the connection of this program";
            return Err(Error::OtherServer(reason.into()));
        }
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_server_is_looked_for_at_once_and_then_twenty_times_a_second() {
        let mut search = Search::begin(S, 10 * S);
        let mut looked = vec![search.due_ns];
        while search.failed(search.due_ns) {
            looked.push(search.due_ns);
        }
        assert_eq!(looked[..2], [10 * S, 10 * S + RETRY_NS]);
        assert_eq!((looked.len(), looked.last()), (21, Some(&(11 * S))), "to the end of the grace");
    }

    #[test]
    fn a_program_that_was_stopped_for_longer_looks_once() {
        let mut search = Search::begin(S, 10 * S);
        assert_eq!((search.due_ns, search.failed(100 * S)), (10 * S, false));
        assert!(Search::begin(u64::MAX, S).failed(1000 * S), "a grace without an end");
    }
}
