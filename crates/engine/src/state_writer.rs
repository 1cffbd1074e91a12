//! The thread that writes a server's state to a file, so that no other thread waits for a disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use state::State;

/// Writes the newest state that it is given to a file.
#[derive(Debug)]
pub struct StateWriter {
    path: PathBuf,
    states: Arc<NewestOnly<State>>,
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
        let states = Arc::new(NewestOnly::default());
        let (ends, ended) = channel();
        let (file, given) = (path.clone(), Arc::clone(&states));
        std::thread::Builder::new().name("consort-state".into()).spawn(move || {
            keep(&file, &given);
            drop::<Sender<()>>(ends);
        })?;
        Ok(Self { path, states, ended })
    }

    /// Has a state written in place of one that waits. Does not wait for the disk.
    pub fn give(&self, state: State) {
        self.states.put(state);
    }

    /// Waits for a bounded time until everything is written; returns the file.
    pub fn finish(self) -> PathBuf {
        let Self { path, states, ended } = self;
        states.close();
        // The channel carries no message; it closes when the thread ends.
        let _ = ended.recv_timeout(LAST);
        path
    }
}

/// A place for one value, in which a newer one replaces it: a disk that hangs costs one state, not
/// all that come meanwhile.
#[derive(Debug)]
struct NewestOnly<T> {
    place: Mutex<Place<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Place<T> {
    newest: Option<T>,
    is_closed: bool,
}

impl<T> Default for NewestOnly<T> {
    fn default() -> Self {
        let place = Mutex::new(Place { newest: None, is_closed: false });
        Self { place, changed: Condvar::new() }
    }
}

impl<T> NewestOnly<T> {
    fn put(&self, value: T) {
        self.lock().newest = Some(value);
        self.changed.notify_one();
    }

    /// Nothing comes any more.
    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for a value; `None` after the last one.
    fn take(&self) -> Option<T> {
        let waits = |place: &mut Place<T>| place.newest.is_none() && !place.is_closed;
        let waited = self.changed.wait_while(self.lock(), waits);
        waited.unwrap_or_else(PoisonError::into_inner).newest.take()
    }

    fn lock(&self) -> MutexGuard<'_, Place<T>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(path: &Path, given: &NewestOnly<State>) {
    let mut complained = String::new();
    while let Some(newest) = given.take() {
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
    fn a_disk_that_hangs_keeps_one_state_waiting() {
        let states = NewestOnly::default();
        let given: Vec<Arc<u32>> = (0..100).map(Arc::new).collect();
        given.iter().for_each(|state| states.put(Arc::clone(state)));
        let held = given.iter().filter(|state| Arc::strong_count(state) > 1).count();
        assert_eq!((held, states.take().as_deref()), (1, Some(&99)));
        states.close();
        assert_eq!(states.take(), None);
    }

    #[test]
    fn a_file_that_cannot_be_written_does_not_end_the_thread() {
        let directory = tempfile::tempdir().unwrap();
        let writer = StateWriter::start(directory.path().join("none/state.json")).unwrap();
        writer.give(State::default());
        assert!(!writer.finish().exists());
    }
}
