//! Saving the server's state for a browser, and restoring one that it sends. Each operation has its
//! own thread and connection to the server: a large state takes long, and other requests must not
//! wait for it.

use std::sync::Arc;

use observe::Unlisted;
use state::State;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::commands::Failure;
use crate::served::Served;

/// Limit of a state that a browser may send, in bytes: about 30000 connections. `consort restore`
/// accepts larger ones.
pub(crate) const STATE_BYTES: usize = 4 * 1024 * 1024;

/// Saves and restores, one at a time, so that threads and memory are bounded.
#[derive(Debug, Clone)]
pub(crate) struct States {
    server: Served,
    turns: Arc<Semaphore>,
}

impl States {
    /// Creates the queue for a server.
    pub(crate) fn of(server: Served) -> Self {
        Self { server, turns: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for earlier operations. Returns `None` when the page ends.
    pub(crate) async fn turn(&self) -> Option<Turn> {
        let place = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        Some(Turn { server: self.server.clone(), place })
    }
}

/// Permission to save or to restore.
#[derive(Debug)]
pub(crate) struct Turn {
    server: Served,
    place: OwnedSemaphorePermit,
}

impl Turn {
    /// Returns the state as text.
    pub(crate) async fn save(self) -> Result<String, Failure> {
        self.on_a_thread(|server| Ok(observe::save(&server.observer()?)?.to_text())).await
    }

    /// Restores a state. Returns one line for each item that could not be restored, with the
    /// reason. An invalid state changes nothing.
    pub(crate) async fn restore(self, text: Vec<u8>) -> Result<Vec<String>, Failure> {
        self.on_a_thread(move |server| {
            let state = parse(&text)?;
            Ok(observe::restore(&server.observer()?, &state, Unlisted::Keep)?)
        })
        .await
    }

    /// The turn lasts until the work is done, even if the browser has gone meanwhile.
    async fn on_a_thread<T: Send + 'static>(
        self,
        work: impl FnOnce(&Served) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let Self { server, place } = self;
        let working = tokio::task::spawn_blocking(move || {
            let done = work(&server);
            drop(place);
            done
        });
        working.await.unwrap_or_else(|error| Err(Failure::NoServer(error.to_string())))
    }
}

fn parse(text: &[u8]) -> Result<State, Failure> {
    let text = std::str::from_utf8(text)
        .map_err(|_| Failure::Wrong("this is not a state of consort's: not UTF-8 text".into()))?;
    State::parse(text).map_err(|error| Failure::Wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_state_has_a_reason() {
        for (text, reason) in [
            (&b"\xff\xfe"[..], "not UTF-8 text"),
            (b"connections", "not a state of consort's"),
            (b"{}", "version"),
            (b"{\"consort_state\": 2}", "version 2, and this consort knows version 1"),
            (b"{\"consort_state\": 1, \"buffer_size\": 0}", "quantum of 0"),
        ] {
            match parse(text) {
                Err(Failure::Wrong(refusal)) => assert!(refusal.contains(reason), "{refusal}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(parse(b"{\"consort_state\": 1}"), Ok(State::default()));
    }
}
