//! A server whose lifetime is that of a pipe to its standard input, so that no server is left
//! behind when the process that started it dies.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::Observer;
use sys::helper::{Ending, Helper};
use sys::process::{PidFd, process_id};
use sys::signals::{Signal, TerminationSignals};

use crate::own_program;

/// Time limit for a server's start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for its end: longer than a disk may take for the last frames of a recording.
const END_TIMEOUT_NS: u64 = 60_000_000_000;
/// Interval of the attempts to reach it.
const RETRY: Duration = Duration::from_millis(10);

/// A child process that runs a server. It ends when this value is dropped, or when this process
/// ends.
#[derive(Debug)]
pub struct TemporaryServer {
    process: Helper,
}

impl TemporaryServer {
    /// Starts the server `name` with these options of `consort run`, and waits until it accepts
    /// clients.
    ///
    /// # Errors
    /// The server cannot be started, ends at once, or accepts no clients in time.
    pub fn start(name: &str, options: &[String]) -> anyhow::Result<Self> {
        let mut command = own_program()?;
        command
            .args(["run", "--while-stdin-is-open", "--server", name])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // The terminal's signals are for the program that uses the server.
            .process_group(0);
        let ending = Ending::CloseInput { timeout_ns: END_TIMEOUT_NS };
        let process = Helper::spawn(&mut command, ending).context("cannot start a server")?;
        let mut server = Self { process };
        let deadline = Instant::now() + START_TIMEOUT;
        // Any server that answers will do: another one of that name may have started first, and
        // this one has given up then.
        while Observer::open(Some(name)).is_err() {
            if let Some(status) = server.process.status()? {
                bail!("the temporary server '{name}' has ended ({status})");
            }
            if Instant::now() > deadline {
                bail!(
                    "the temporary server '{name}' accepts no clients after {} s",
                    START_TIMEOUT.as_secs()
                );
            }
            std::thread::sleep(RETRY);
        }
        Ok(server)
    }

    /// Ends the server and waits until it has ended.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn end(&mut self) -> io::Result<()> {
        self.process.end().map(drop)
    }
}

/// Sends SIGTERM to this process once its standard input has ended. Must be called by the main
/// thread before any other thread exists.
///
/// # Errors
/// Signals cannot be blocked, or no thread can be started.
pub fn end_with_stdin() -> anyhow::Result<TerminationSignals> {
    at_end_of_stdin(|process| {
        let _ = process.kill(Signal::Terminate);
    })
}

/// The same for a process that may hang in code that it loads: it is killed if it is still there
/// `within_ns` later.
///
/// # Errors
/// Those of [`end_with_stdin`].
pub fn end_with_stdin_within(within_ns: u64) -> anyhow::Result<TerminationSignals> {
    at_end_of_stdin(move |process| {
        let _ = process.kill(Signal::Terminate);
        sys::clock::sleep_until(sys::clock::now_ns() + within_ns);
        let _ = process.kill(Signal::Kill);
    })
}

fn at_end_of_stdin(
    end: impl FnOnce(&PidFd) + Send + 'static,
) -> anyhow::Result<TerminationSignals> {
    // Blocked here so that the thread below inherits the mask: otherwise the signal would kill it.
    let signals = TerminationSignals::block().context("cannot block signals")?;
    let process = PidFd::open(process_id()).context("cannot send signals to this process")?;
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        end(&process);
    })?;
    Ok(signals)
}
