//! `consort exec`: a JACK program against this server, whatever libjack the system has.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Context;
use clap::Args;
use cli::TemporaryServer;
use sys::signals::TerminationSignals;

use crate::attach;

mod library;
mod supervision;

/// A shell's exit code for a program that was not found.
const NOT_FOUND: u8 = 127;
/// A shell's exit code for a program that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Run a JACK program against this server
///
/// The program finds consort's libjack.so.0 through LD_LIBRARY_PATH and the server through
/// JACK_DEFAULT_SERVER. If no server of that name is running, one is started and ends after the
/// program. The exit code is the program's; 126 and 127 say, as in a shell, that it cannot be
/// executed or was not found. A signal that ends the program ends consort too; only SIGHUP, SIGINT
/// and SIGTERM become exit code 128 + number if consort had to start the server.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  consort exec -- jack_lsp -c")]
pub(crate) struct Execute {
    /// The program and its arguments
    #[arg(last = true, required = true, value_names = ["PROGRAM", "ARGUMENTS"])]
    words: Vec<OsString>,
}

impl Execute {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let mut command = self.command(server)?;
        match attach::to(server) {
            // Nothing is left to do afterwards: the program replaces this process.
            Ok(_) => {
                let error = command.exec();
                self.not_started(error)
            }
            Err(client::Error::NoServer { .. }) => {
                self.run_beside(TemporaryServer::start(server, &[])?, command)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Runs the program, and ends the server after it.
    fn run_beside(
        &self,
        mut server: TemporaryServer,
        mut command: Command,
    ) -> anyhow::Result<ExitCode> {
        // Blocked before the program starts: from then on a signal is meant for it.
        let signals = TerminationSignals::block().context("cannot block signals")?;
        signals.unblock_in(&mut command);
        match command.spawn() {
            Ok(program) => {
                let status =
                    supervision::wait(program, &signals).context("cannot wait for the program")?;
                server.end()?;
                Ok(end_like(status))
            }
            Err(error) => self.not_started(error),
        }
    }

    fn command(&self, server: &str) -> anyhow::Result<Command> {
        let executable = std::env::current_exe().context("cannot find consort's own directory")?;
        let directory = library::directory(&executable)?;
        let search_path = library::search_path(directory, std::env::var_os("LD_LIBRARY_PATH"))?;
        let (program, arguments) = self.words.split_first().context("no program was named")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("LD_LIBRARY_PATH", search_path)
            .env("JACK_DEFAULT_SERVER", server);
        Ok(command)
    }

    fn not_started(&self, error: io::Error) -> anyhow::Result<ExitCode> {
        let program = self.words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        sys::report!("consort: cannot run '{program}': {error}");
        let missing = error.kind() == io::ErrorKind::NotFound;
        Ok(ExitCode::from(if missing { NOT_FOUND } else { NOT_EXECUTABLE }))
    }
}

/// The program's exit code; if a signal ended it, that signal ends this process too.
fn end_like(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        return ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1));
    };
    // A shell that replaces this process can send itself any signal. It writes no second core file.
    // A signal that is blocked here becomes the exit code that shells report for it.
    let script = "ulimit -c 0; kill -\"$1\" $$; exit $((128 + $1))";
    let error = Command::new("/bin/sh").args(["-c", script, "sh"]).arg(signal.to_string()).exec();
    sys::report!(
        "consort: signal {signal} ended the program, and /bin/sh cannot pass it on: {error}"
    );
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
