//! A thread that works on a file for as long as the driver holds the other end of its ring.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use soundfile::SoundFileError;

use super::FileDriverError;
use crate::driver::Pace;

/// Decoding a packet needs little; this is ample.
const STACK_BYTES: usize = 1 << 20;

/// How often a thread whose end has come is looked at.
const JOIN_POLL_NS: u64 = 1_000_000;

/// How often the threads look at their rings. A ring lasts a second, so this is often enough in real time;
/// where the graph runs as fast as it can, the poll bounds its speed at a ring per poll.
pub(super) fn ring_poll(pace: Pace) -> Duration {
    match pace {
        Pace::RealTime => Duration::from_millis(20),
        Pace::WhenDone => Duration::from_millis(1),
    }
}

/// The thread, then what became of it.
#[derive(Debug)]
pub(super) enum FileThread {
    /// At work, or done without having been asked.
    Running(JoinHandle<Result<(), SoundFileError>>),
    /// Ended, with what went wrong.
    Ended(Result<(), String>),
}

impl FileThread {
    /// Starts the thread. `name` is cut after 15 bytes.
    pub(super) fn start(
        name: &str,
        path: &Path,
        body: impl FnOnce() -> Result<(), SoundFileError> + Send + 'static,
    ) -> Result<Self, FileDriverError> {
        sys::thread::spawn_without_signals(name, STACK_BYTES, body)
            .map(Self::Running)
            .map_err(|source| FileDriverError::Thread { path: path.to_owned(), source })
    }

    /// Waits for the end of the thread, whose ring has been dropped, until `CLOCK_MONOTONIC` reaches
    /// `deadline_ns`; then the thread is left to itself.
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
                Err(_panic) => Err(format!("the thread for {} broke off: report this", path.display())),
            };
            *self = Self::Ended(outcome);
        }
    }

    /// What went wrong, once the thread has been joined.
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
    fn the_outcome_of_a_thread_is_told_in_words() {
        const LONG_NS: u64 = 60_000_000_000;
        assert_eq!(outcome(|| Ok(()), LONG_NS), None);
        let full = || Err(SoundFileError::DiskFull { path: "a.wav".into(), frames: 3 });
        assert!(outcome(full, LONG_NS).unwrap().starts_with("the disk is full"));
        assert!(outcome(|| panic!("on purpose"), LONG_NS).unwrap().contains("broke off"));
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
