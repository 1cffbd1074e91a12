//! Threads that are waited for, but not for ever: they may be in the program's code.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sys::thread::CreatedThread;

/// A thread that did not hear its call, as it was about to fall asleep, is called again after this.
const AGAIN: Duration = Duration::from_millis(10);

/// A thread of this library inside the program, made as the program wants its threads made.
#[derive(Debug)]
pub(crate) struct Joinable<T> {
    thread: CreatedThread,
    /// Disconnected when the thread has ended without one.
    result: Receiver<T>,
}

impl<T: Send + 'static> Joinable<T> {
    /// Starts a thread, which blocks the signals that the calling one does.
    pub(crate) fn spawn(
        name: &str,
        stack_bytes: usize,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (body, result) = telling(body);
        Ok(Self { thread: sys::thread::spawn_by_creator(name, stack_bytes, body)?, result })
    }

    /// Starts a thread on which the program's signal handlers do not run.
    pub(crate) fn spawn_without_signals(
        name: &str,
        stack_bytes: usize,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (body, result) = telling(body);
        Ok(Self { thread: sys::thread::spawn_by_creator_without_signals(name, stack_bytes, body)?, result })
    }

    /// Has `call` call the thread, again and again, and waits for its end for at most `patience`; gives its result. A
    /// thread that goes on is left to itself; so is the calling one.
    pub(crate) fn join(self, patience: Duration, mut call: impl FnMut()) -> Option<T> {
        if self.thread.is_current() {
            return None;
        }
        let until = Instant::now() + patience;
        loop {
            call();
            match self.result.recv_timeout(AGAIN.min(until.saturating_duration_since(Instant::now()))) {
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(RecvTimeoutError::Timeout) => return None,
                ended => {
                    self.thread.join();
                    return ended.ok();
                }
            }
        }
    }
}

/// `body`, and where its result is told.
fn telling<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> (impl FnOnce() + Send + 'static, Receiver<T>) {
    let (sender, result) = channel();
    let telling = move || {
        // Fails if nobody waits for it any more.
        let _ = sender.send(body());
    };
    (telling, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_gives_its_result_and_one_that_does_not_is_left() {
        let ends = Joinable::spawn("ends", 1 << 18, || 7).unwrap();
        assert_eq!(ends.join(Duration::from_secs(60), || {}), Some(7));
        let (release, wait) = channel::<()>();
        let stays = Joinable::spawn("stays", 1 << 18, move || wait.recv()).unwrap();
        assert!(stays.join(Duration::ZERO, || {}).is_none());
        drop(release);
    }

    #[test]
    fn a_thread_is_called_until_it_has_heard() {
        let (call, calls) = channel();
        let hears =
            Joinable::spawn("hears", 1 << 18, move || (calls.recv(), calls.recv()).1.is_ok()).unwrap();
        let calling = || {
            // Fails once the thread has heard enough.
            let _ = call.send(());
        };
        assert_eq!(hears.join(Duration::from_secs(60), calling), Some(true));
    }

    #[test]
    fn a_thread_that_panics_has_ended() {
        let panics = Joinable::spawn("panics", 1 << 18, || panic!("on purpose")).unwrap();
        assert_eq!(panics.join(Duration::from_secs(60), || {}), None::<()>);
    }
}
