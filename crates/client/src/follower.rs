//! Following a running server's recording, read-only: the server does not notice. Thread: any but those of cycles.

use std::collections::HashMap;
use std::time::Duration;

use rt::shm::{RECORD_WORDS, RecordCursor, Recording};
use sys::memory::Shared;

use crate::{Error, Observer};

/// What a follower is told, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded<'a> {
    /// From here on this client has this name.
    Name(u32, &'a str),
    /// A record.
    Record(&'a [u64; RECORD_WORDS]),
    /// So many records were overwritten before they were read.
    Lost(u64),
}

/// A place in a running server's recording.
#[derive(Debug)]
pub struct Follower {
    observer: Observer,
    recording: Shared<Recording>,
    cursor: RecordCursor,
    names: HashMap<u32, String>,
    changes: Option<u64>,
}

impl Follower {
    /// How often a follower looks: well below the time in which the ring turns round.
    pub const LOOK: Duration = Duration::from_millis(20);

    /// From now on.
    ///
    /// # Errors
    /// Those of [`Observer::open`] and [`Observer::recording`].
    pub fn of(server: &str) -> Result<Self, Error> {
        let observer = Observer::open(Some(server))?;
        let recording = observer.recording()?;
        let cursor = RecordCursor::newest(&recording);
        Ok(Self { observer, recording, cursor, names: HashMap::new(), changes: None })
    }

    /// Who asks the same server.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Tells everything that is new.
    ///
    /// # Errors
    /// Those of `tell`.
    pub fn catch_up<E>(&mut self, mut tell: impl FnMut(Recorded<'_>) -> Result<(), E>) -> Result<(), E> {
        let registry = self.observer.registry();
        let changes = registry.changes();
        if self.changes != Some(changes) {
            self.changes = Some(changes);
            for client in registry.clients() {
                if self.names.get(&client.id) != Some(&client.name) {
                    tell(Recorded::Name(client.id, &client.name))?;
                    self.names.insert(client.id, client.name);
                }
            }
        }
        let lost = self.cursor.lost;
        // At most one turn of the ring: who is slower than the server must come back to its caller, too.
        for _ in 0..rt::shm::RECORDS {
            let Some(words) = self.cursor.next(&self.recording) else { break };
            tell(Recorded::Record(&words))?;
        }
        match self.cursor.lost - lost {
            0 => Ok(()),
            records => tell(Recorded::Lost(records)),
        }
    }
}
