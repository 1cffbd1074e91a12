//! A thread that works on a file for as long as the driver holds the other end of its ring.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use soundfile::SoundFileError;

use super::FileDriverError;
use crate::Pacing;

/// Ample: decoding a packet needs little.
const STACK_BYTES: usize = 1 << 20;

/// Interval of the checks whether a thread has ended.
const JOIN_POLL_NS: u64 = 1_000_000;

/// Returns how often the threads poll their rings. A ring lasts a second, so 20 ms is often enough
/// in real time; without real time, the interval bounds the speed to a ring per poll.
pub(crate) fn ring_poll(pacing: Pacing) -> Duration {
    match pacing {
        Pacing::RealTime => Duration::from_millis(20),
        Pacing::WhenDone => Duration::from_millis(1),
    }
}

/// The thread, and its outcome once it has ended.
#[derive(Debug)]
pub(super) enum FileThread {
    /// Running, or ended but not joined.
    Running(JoinHandle<Result<(), SoundFileError>>),
    /// Joined, with what went wrong.
    Ended(Result<(), String>),
}

impl FileThread {
    /// Starts the thread. `name` is cut to 15 bytes.
    pub(super) fn start(
        name: &str,
        path: &Path,
        body: impl FnOnce() -> Result<(), SoundFileError> + Send + 'static,
    ) -> Result<Self, FileDriverError> {
        let body = move || {
            // It decodes what others have written, and the server still has root's rights where it
            // opens its first driver.
            // MUTATION: file_thread.keeps_capabilities
            let _ = sys::process::drop_rights(false);
            body()
        };
        sys::thread::spawn_without_signals(name, STACK_BYTES, body)
            .map(Self::Running)
            .map_err(|source| FileDriverError::Thread { path: path.to_owned(), source })
    }

    /// Waits for the end of the thread, whose ring has been dropped, until `CLOCK_MONOTONIC`
    /// reaches `deadline_ns`; a thread that has not ended by then is detached.
    pub(super) fn join_until(&mut self, path: &Path, deadline_ns: u64) {
        let Self::Running(handle) = self else { return };
        while !handle.is_finished() && sys::clock::now_ns() < deadline_ns {
            sys::clock::sleep_until(sys::clock::now_ns() + JOIN_POLL_NS);
        }
        let late = Err(format!("{} did not answer in time: the disk hangs", path.display()));
        let Self::Running(handle) = std::mem::replace(self, Self::Ended(late)) else { return };
        if handle.is_finished() {
            let outcome = match handle.join() {
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
                Err(_panic) => Err(format!(
                    "the thread for {} ended in a panic: please report this",
                    path.display()
                )),
            };
            *self = Self::Ended(outcome);
        }
    }

    /// Returns what went wrong, once the thread has been joined.
    pub(super) fn failure(&self) -> Option<&str> {
        match self {
            Self::Ended(Err(failure)) => Some(failure),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(
        body: impl FnOnce() -> Result<(), SoundFileError> + Send + 'static,
        wait_ns: u64,
    ) -> Option<String> {
        let path = Path::new("a.wav");
        let mut thread = FileThread::start("test", path, body).unwrap();
        thread.join_until(path, sys::clock::now_ns() + wait_ns);
        thread.failure().map(str::to_owned)
    }

    #[test]
    fn the_outcome_of_a_thread_is_a_sentence() {
        const LONG_NS: u64 = 60_000_000_000;
        assert_eq!(outcome(|| Ok(()), LONG_NS), None);
        let full = || Err(SoundFileError::DiskFull { path: "a.wav".into(), frames: 3 });
        assert!(outcome(full, LONG_NS).unwrap().starts_with("the disk is full"));
        assert!(outcome(|| panic!("on purpose"), LONG_NS).unwrap().contains("ended in a panic"));
    }

    #[test]
    fn a_thread_that_hangs_is_left_after_the_deadline() {
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let hang = move || {
            let _ = wait.recv();
            Ok(())
        };
        assert!(outcome(hang, 1_000_000).unwrap().contains("hangs"));
        drop(release);
    }
}
