//! Follows a running server's recording, which is mapped read-only: the server does not notice.

use std::collections::HashMap;
use std::time::Duration;

use client::{Error, Observer};
use rt::shm::{RECORD_WORDS, RecordCursor, Recording};
use sys::memory::Shared;

/// What a [`RecordingFollower`] reports, in the order in which it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded<'a> {
    /// From here on, records of this client id belong to the client of this name.
    Name(u32, &'a str),
    /// A record.
    Record(&'a [u64; RECORD_WORDS]),
    /// This many records were overwritten before they were read.
    Lost(u64),
}

/// A position in a running server's recording.
#[derive(Debug)]
pub struct RecordingFollower {
    observer: Observer,
    recording: Shared<Recording>,
    cursor: RecordCursor,
    names: HashMap<u32, String>,
    /// The registry's count of changes before its names were last read.
    changes: Option<u64>,
}

impl RecordingFollower {
    /// Interval at which to call [`catch_up`](Self::catch_up): well below the time in which the
    /// ring of records wraps.
    pub const POLL: Duration = Duration::from_millis(20);

    /// Follows the recording of the server `server`, from its newest record on.
    ///
    /// # Errors
    /// Same as [`Observer::open`] and [`Observer::recording`].
    pub fn open(server: &str) -> Result<Self, Error> {
        Self::of(Observer::open(Some(server))?)
    }

    /// Follows the recording of the server of `observer`, likewise.
    ///
    /// # Errors
    /// Same as [`Observer::recording`].
    pub fn of(observer: Observer) -> Result<Self, Error> {
        let recording = observer.recording()?;
        let cursor = RecordCursor::newest(&recording);
        Ok(Self { observer, recording, cursor, names: HashMap::new(), changes: None })
    }

    /// The observer of the same server.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Reports everything that was recorded since the previous call.
    ///
    /// # Errors
    /// The error that `report` returned.
    pub fn catch_up<E>(
        &mut self,
        mut report: impl FnMut(Recorded<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let registry = self.observer.registry();
        let changes = registry.changes();
        if self.changes != Some(changes) {
            self.changes = Some(changes);
            for client in registry.clients() {
                if self.names.get(&client.id) != Some(&client.name) {
                    report(Recorded::Name(client.id, &client.name))?;
                    self.names.insert(client.id, client.name);
                }
            }
        }
        let lost = self.cursor.lost;
        // At most one turn of the ring, so that a reader slower than the server returns to its
        // caller as well.
        for _ in 0..rt::shm::RECORDS {
            let Some(words) = self.cursor.next(&self.recording) else { break };
            report(Recorded::Record(&words))?;
        }
        match self.cursor.lost - lost {
            0 => Ok(()),
            records => report(Recorded::Lost(records)),
        }
    }
}
