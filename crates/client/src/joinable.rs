//! Threads that are waited for, but not for ever: they may be in the program's code.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread of this library inside the program.
#[derive(Debug)]
pub(crate) struct Joinable<T> {
    handle: JoinHandle<T>,
    /// Disconnected when the thread has ended, however it ended.
    ended: Receiver<()>,
}

impl<T: Send + 'static> Joinable<T> {
    /// Starts a thread on which the program's signal handlers do not run.
    pub(crate) fn spawn(
        name: &str,
        stack_bytes: usize,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (alive, ended) = channel();
        let handle = sys::thread::spawn_without_signals(name, stack_bytes, move || {
            let _dropped_at_the_end = alive;
            body()
        })?;
        Ok(Self { handle, ended })
    }

    /// Waits for the thread's end for at most `patience`, and gives its result. A thread that goes on is left to
    /// itself; so is the calling one.
    pub(crate) fn join(self, patience: Duration) -> Option<T> {
        if self.handle.thread().id() == std::thread::current().id() {
            return None;
        }
        match self.ended.recv_timeout(patience) {
            Ok(()) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => self.handle.join().ok(),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_gives_its_result_and_one_that_does_not_is_left() {
        let ends = Joinable::spawn("ends", 1 << 18, || 7).unwrap();
        assert_eq!(ends.join(Duration::from_secs(60)), Some(7));
        let (release, wait) = channel::<()>();
        let stays = Joinable::spawn("stays", 1 << 18, move || wait.recv()).unwrap();
        assert!(stays.join(Duration::ZERO).is_none());
        drop(release);
    }

    #[test]
    fn a_thread_that_panics_has_ended() {
        let panics = Joinable::spawn("panics", 1 << 18, || panic!("on purpose")).unwrap();
        assert_eq!(panics.join(Duration::from_secs(60)), None::<()>);
    }
}
