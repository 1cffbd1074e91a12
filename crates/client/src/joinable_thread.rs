//! Threads that are joined with a time limit, since they may be in the program's code.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sys::thread::CreatedThread;

/// Interval at which a thread is woken again: it may have missed a wake-up just before it slept.
const AGAIN: Duration = Duration::from_millis(10);

/// A thread of this library in the program's process, created with the program's thread creator.
#[derive(Debug)]
pub(crate) struct JoinableThread<T> {
    thread: CreatedThread,
    /// Disconnected if the thread has ended without a result.
    result: Receiver<T>,
}

impl<T: Send + 'static> JoinableThread<T> {
    /// Starts a thread with the signal mask of the calling thread.
    pub(crate) fn spawn(
        name: &str,
        stack_bytes: usize,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (body, result) = with_result_channel(body);
        Ok(Self { thread: sys::thread::spawn_by_creator(name, stack_bytes, body)?, result })
    }

    /// Starts a thread with all signals blocked, so that no signal handler of the program runs on
    /// it.
    pub(crate) fn spawn_without_signals(
        name: &str,
        stack_bytes: usize,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (body, result) = with_result_channel(body);
        Ok(Self {
            thread: sys::thread::spawn_by_creator_without_signals(name, stack_bytes, body)?,
            result,
        })
    }

    /// Waits at most `patience` for the thread to end, calling `wake` repeatedly, and returns its
    /// result. A thread that does not end is left running, as is the calling thread itself.
    pub(crate) fn join(self, patience: Duration, mut wake: impl FnMut()) -> Option<T> {
        if self.thread.is_current() {
            return None;
        }
        let until = Instant::now() + patience;
        loop {
            wake();
            match self
                .result
                .recv_timeout(AGAIN.min(until.saturating_duration_since(Instant::now())))
            {
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

/// Returns `body` extended to send its result, and the receiver of the result.
fn with_result_channel<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> (impl FnOnce() + Send + 'static, Receiver<T>) {
    let (sender, result) = channel();
    let with_result_channel = move || {
        // Fails if the receiver has given up.
        let _ = sender.send(body());
    };
    (with_result_channel, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_does_not_end_is_left_running() {
        let ends = JoinableThread::spawn("ends", 1 << 18, || 7).unwrap();
        assert_eq!(ends.join(Duration::from_secs(60), || {}), Some(7));
        let (release, wait) = channel::<()>();
        let stays = JoinableThread::spawn("stays", 1 << 18, move || wait.recv()).unwrap();
        assert!(stays.join(Duration::ZERO, || {}).is_none());
        drop(release);
    }

    #[test]
    fn a_thread_is_called_until_it_has_heard() {
        let (call, calls) = channel();
        let hears =
            JoinableThread::spawn("hears", 1 << 18, move || (calls.recv(), calls.recv()).1.is_ok())
                .unwrap();
        let calling = || {
            // Fails once the thread has received enough calls.
            let _ = call.send(());
        };
        assert_eq!(hears.join(Duration::from_secs(60), calling), Some(true));
    }

    #[test]
    fn a_thread_that_panics_has_ended() {
        let panics = JoinableThread::spawn("panics", 1 << 18, || panic!("on purpose")).unwrap();
        assert_eq!(panics.join(Duration::from_secs(60), || {}), None::<()>);
    }
}
