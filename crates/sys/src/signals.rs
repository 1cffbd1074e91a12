//! The signals that ask a server to end, read from a descriptor instead of interrupting a thread.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, retry_on_intr};

/// A signal that this project sends or handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGHUP`
    Hangup,
    /// `SIGINT`
    Interrupt,
    /// `SIGTERM`
    Terminate,
    /// `SIGKILL`
    Kill,
    /// `SIGSTOP`
    Stop,
    /// `SIGCONT`
    Continue,
}

const TERMINATION: [(libc::c_int, Signal); 3] = [
    (libc::SIGHUP, Signal::Hangup),
    (libc::SIGINT, Signal::Interrupt),
    (libc::SIGTERM, Signal::Terminate),
];

impl Signal {
    pub(crate) fn into_rustix(self) -> rustix::process::Signal {
        use rustix::process::Signal as Raw;
        match self {
            Self::Hangup => Raw::HUP,
            Self::Interrupt => Raw::INT,
            Self::Terminate => Raw::TERM,
            Self::Kill => Raw::KILL,
            Self::Stop => Raw::STOP,
            Self::Continue => Raw::CONT,
        }
    }
}

/// SIGHUP, SIGINT and SIGTERM as a descriptor that becomes readable.
#[derive(Debug)]
pub struct TerminationSignals {
    signalfd: OwnedFd,
}

impl TerminationSignals {
    /// Blocks the three signals in the calling thread. Must be called by the main thread before it
    /// creates another: threads inherit the block, and the signals would kill the process through a
    /// thread without it. They stay blocked after the drop.
    ///
    /// # Errors
    /// The errors of `signalfd`: no descriptor or memory left.
    pub fn block() -> io::Result<Self> {
        let set = signal_set(&TERMINATION.map(|(number, _)| number));
        change_mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: `set` is initialised and -1 asks for a new descriptor.
        let signalfd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if signalfd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor and nothing else owns it.
        Ok(Self { signalfd: unsafe { OwnedFd::from_raw_fd(signalfd) } })
    }

    /// Makes `command` start its program with the three signals unblocked, although they are
    /// blocked here.
    pub fn unblock_in(&self, command: &mut Command) {
        let set = signal_set(&TERMINATION.map(|(number, _)| number));
        // SAFETY: pthread_sigmask is async-signal-safe and is all that runs between fork and exec.
        unsafe { command.pre_exec(move || change_mask(libc::SIG_UNBLOCK, &set).map(drop)) };
    }

    /// Unblocks the three signals in the calling thread, which has inherited the block from a
    /// program that reads them.
    ///
    /// # Errors
    /// None that is known.
    pub fn unblock() -> io::Result<()> {
        let set = signal_set(&TERMINATION.map(|(number, _)| number));
        change_mask(libc::SIG_UNBLOCK, &set).map(drop)
    }

    /// Returns the next signal that has arrived; `None` if there is none. Does not wait.
    ///
    /// # Errors
    /// The errors of `read`; not an interruption.
    pub fn read(&self) -> io::Result<Option<Signal>> {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        match retry_on_intr(|| rustix::io::read(&self.signalfd, &mut record)) {
            Ok(_) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        // `ssi_signo` is the record's first field (signalfd(2)).
        let number = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
        Ok(TERMINATION.iter().find(|(known, _)| *known as u32 == number).map(|(_, signal)| *signal))
    }
}

impl AsFd for TerminationSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signalfd.as_fd()
    }
}

/// The calling thread's signal mask, restored on drop.
pub(crate) struct SavedMask(libc::sigset_t);

impl SavedMask {
    /// Blocks every signal except those that report a fault of the thread itself: if they were
    /// blocked, the kernel would kill the process without calling the program's handler.
    pub(crate) fn block_all() -> io::Result<Self> {
        const FAULTS: [libc::c_int; 6] =
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises the set; the signal numbers are valid.
        let set = unsafe {
            libc::sigfillset(set.as_mut_ptr());
            for fault in FAULTS {
                libc::sigdelset(set.as_mut_ptr(), fault);
            }
            set.assume_init()
        };
        change_mask(libc::SIG_SETMASK, &set).map(Self)
    }
}

impl Drop for SavedMask {
    fn drop(&mut self) {
        // Cannot fail: the mask came from the kernel.
        let _ = change_mask(libc::SIG_SETMASK, &self.0);
    }
}

fn signal_set(numbers: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; callers pass valid signal numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &number in numbers {
            libc::sigaddset(set.as_mut_ptr(), number);
        }
        set.assume_init()
    }
}

/// Changes the calling thread's mask and returns the previous one.
fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both point to sets that live through the call.
    let errno = unsafe { libc::pthread_sigmask(how, set, before.as_mut_ptr()) };
    if errno != 0 {
        return Err(io::Error::from_raw_os_error(errno));
    }
    // SAFETY: pthread_sigmask has filled it, since it succeeded.
    Ok(unsafe { before.assume_init() })
}

#[cfg(test)]
mod tests {
    use rustix::event::PollFlags;

    use super::*;
    use crate::poll::wait_for;

    fn send_to_this_thread(number: libc::c_int) {
        // SAFETY: the calling thread exists, and it blocks the signal.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), number) }, 0);
    }

    #[test]
    fn termination_signals_arrive_on_the_descriptor() {
        let signals = TerminationSignals::block().unwrap();
        assert_eq!(signals.read().unwrap(), None);
        for (number, signal) in TERMINATION {
            send_to_this_thread(number);
            assert!(wait_for(signals.as_fd(), PollFlags::IN, None).unwrap());
            assert_eq!(signals.read().unwrap(), Some(signal));
            assert_eq!(signals.read().unwrap(), None);
        }
    }

    #[test]
    fn a_saved_mask_is_put_back() {
        let blocked = |number| {
            let now = change_mask(libc::SIG_BLOCK, &signal_set(&[])).unwrap();
            // SAFETY: an initialised set and a valid number.
            unsafe { libc::sigismember(&now, number) == 1 }
        };
        assert!(!blocked(libc::SIGUSR1));
        let saved = SavedMask::block_all().unwrap();
        assert!(blocked(libc::SIGUSR1));
        assert!(blocked(libc::SIGALRM));
        assert!(!blocked(libc::SIGSEGV));
        drop(saved);
        assert!(!blocked(libc::SIGUSR1));
    }
}
