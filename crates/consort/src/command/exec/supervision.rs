//! Waiting for a program, and passing signals on to it.

use std::io;
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};

use sys::poll::{Interest, Poller};
use sys::process::PidFd;
use sys::signals::{Signal, TerminationSignals};

const PROGRAM: u64 = 0;
const SIGNALS: u64 = 1;

/// Waits for `program` to end and passes SIGTERM and SIGHUP on to it. SIGINT is not passed on: a
/// terminal sends it to the program as well, and many programs abort at the second one.
pub(super) fn wait(mut program: Child, signals: &TerminationSignals) -> io::Result<ExitStatus> {
    let pidfd = PidFd::open(program.id())?;
    let poller = Poller::new()?;
    poller.add(pidfd.as_fd(), PROGRAM, Interest::Readable)?;
    poller.add(signals.as_fd(), SIGNALS, Interest::Readable)?;
    let mut events = Vec::new();
    loop {
        poller.wait(&mut events, None)?;
        if events.iter().any(|event| event.token == PROGRAM) {
            return program.wait();
        }
        while let Some(signal) = signals.read()? {
            if signal != Signal::Interrupt {
                // It fails only if the program has just ended.
                let _ = pidfd.kill(signal);
            }
        }
    }
}
