//! A server that lives as long as a pipe to it is open, so that it cannot be left behind.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sys::process::{PidFd, process_id};
use sys::signals::{Signal, TerminationSignals};

use crate::attach;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(10);

/// A server of our own. It ends when this value, or this process, does.
#[derive(Debug)]
pub(crate) struct TemporaryServer {
    process: Child,
}

impl TemporaryServer {
    /// Starts the server `name` with these options of `consort run`, and waits until it takes programs in.
    pub(crate) fn start(name: &str, options: &[String]) -> anyhow::Result<Self> {
        let executable = std::env::current_exe().context("cannot find the server's program")?;
        let process = Command::new(executable)
            .args(["run", "--while-stdin-is-open", "--server", name])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // The terminal's signals are for the program.
            .process_group(0)
            .spawn()
            .context("cannot start a server")?;
        let mut server = Self { process };
        let deadline = Instant::now() + PATIENCE;
        // Whoever answers: another server of that name may have been quicker, and ours has given up then.
        while attach::to(name).is_err() {
            if let Some(status) = server.process.try_wait()? {
                bail!("the server that was started for the program has ended ({status})");
            }
            if Instant::now() > deadline {
                bail!("the server that was started for the program takes no programs in");
            }
            std::thread::sleep(RETRY);
        }
        Ok(server)
    }

    /// Ends the server and waits until it has ended.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        // `wait` closes the pipe.
        self.process.wait().map(drop)
    }
}

impl Drop for TemporaryServer {
    fn drop(&mut self) {
        // Waits no second time after `end`.
        let _ = self.end();
    }
}

/// Asks this process to end, as SIGTERM does, once standard input has ended. To be called by the main thread
/// before it makes another.
pub(crate) fn end_with_stdin() -> anyhow::Result<TerminationSignals> {
    // The thread below would otherwise be one that the signal kills.
    let signals = TerminationSignals::block().context("cannot block signals")?;
    let process = PidFd::open(process_id()).context("cannot send signals to this process")?;
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = process.kill(Signal::Terminate);
    })?;
    Ok(signals)
}
