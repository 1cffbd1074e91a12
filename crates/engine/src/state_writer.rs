//! The thread that writes a server's state down, so that nobody waits for a disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use state::State;

/// Writes what it is given to one file, the newest only.
#[derive(Debug)]
pub struct StateWriter {
    path: PathBuf,
    states: Sender<State>,
    /// Ends with the thread.
    ended: Receiver<()>,
}

/// How long the end of a server waits for its last state to be on the disk.
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
        std::thread::Builder::new().name("consort-keeper".into()).spawn(move || {
            keep(&file, &given);
            drop::<Sender<()>>(ends);
        })?;
        Ok(Self { path, states, ended })
    }

    /// Has a state written soon. Does not wait.
    pub fn give(&self, state: State) {
        // Fails only if the thread is gone, which it is not while this lives.
        let _ = self.states.send(state);
    }

    /// Has all written that was given, in bounded time; gives the file.
    pub fn finish(self) -> PathBuf {
        let Self { path, states, ended } = self;
        drop(states);
        // An answer never comes, only its end.
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
            eprintln!("consort: the state is not kept: {complaint}");
        }
        complained = complaint;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_state_that_was_given_is_on_the_disk_when_the_keeper_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let keeper = StateWriter::start(directory.path().join("state.json")).unwrap();
        for quantum in 1..100 {
            keeper.give(State { quantum: Some(quantum), ..State::default() });
        }
        let path = keeper.finish();
        assert_eq!(state::read(&path).unwrap().quantum, Some(99));
    }

    #[test]
    fn a_file_that_cannot_be_written_ends_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let keeper = StateWriter::start(directory.path().join("none/state.json")).unwrap();
        keeper.give(State::default());
        assert!(!keeper.finish().exists());
    }
}
