//! The thread that writes a server's state to a file, so that no other thread waits for a disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use state::State;

/// Writes the newest state that it is given to a file.
#[derive(Debug)]
pub struct StateWriter {
    path: PathBuf,
    states: Sender<State>,
    /// Ends with the thread.
    ended: Receiver<()>,
}

/// How long a stopping server waits for its last state to be on the disk.
const LAST: Duration = Duration::from_secs(5);

impl StateWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the kernel has no thread left.
    pub fn start(path: PathBuf) -> std::io::Result<Self> {
        let (states, given) = channel();
        let (ends, ended) = channel();
        let file = path.clone();
        std::thread::Builder::new().name("consort-state".into()).spawn(move || {
            keep(&file, &given);
            drop::<Sender<()>>(ends);
        })?;
        Ok(Self { path, states, ended })
    }

    /// Queues a state to be written. Does not wait.
    pub fn give(&self, state: State) {
        // Fails only if the thread is gone, which it is not while this exists.
        let _ = self.states.send(state);
    }

    /// Waits for a bounded time until everything is written; returns the file.
    pub fn finish(self) -> PathBuf {
        let Self { path, states, ended } = self;
        drop(states);
        // The channel carries no message; it closes when the thread ends.
        let _ = ended.recv_timeout(LAST);
        path
    }
}

fn keep(path: &Path, given: &Receiver<State>) {
    let mut complained = String::new();
    while let Ok(first) = given.recv() {
        let newest = given.try_iter().last().unwrap_or(first);
        let complaint =
            state::write(path, &newest).err().map(|error| error.to_string()).unwrap_or_default();
        if !complaint.is_empty() && complaint != complained {
            sys::report!("consort: the state is not kept: {complaint}");
        }
        complained = complaint;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_state_that_was_given_is_on_the_disk_when_the_writer_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let writer = StateWriter::start(directory.path().join("state.json")).unwrap();
        for quantum in 1..100 {
            writer.give(State { quantum: Some(quantum), ..State::default() });
        }
        let path = writer.finish();
        assert_eq!(state::read(&path).unwrap().quantum, Some(99));
    }

    #[test]
    fn a_file_that_cannot_be_written_does_not_end_the_thread() {
        let directory = tempfile::tempdir().unwrap();
        let writer = StateWriter::start(directory.path().join("none/state.json")).unwrap();
        writer.give(State::default());
        assert!(!writer.finish().exists());
    }
}
