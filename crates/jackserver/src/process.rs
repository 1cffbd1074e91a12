//! A server's process: the `jackd` of the installation that this library belongs to.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::Observer;
use sys::helper::{Ending, Helper};
use sys::library::loaded_from;

/// Time limit for the start of a server.
const STARTING: Duration = Duration::from_secs(15);
/// Time limit for the end of a server, ns: it waits for plug-ins to finish.
const END_TIMEOUT_NS: u64 = 10_000_000_000;
const LOOK: Duration = Duration::from_millis(5);

/// A running server, stopped on drop.
#[derive(Debug)]
pub struct Process {
    process: Helper,
    /// The server's name.
    pub name: String,
}

impl Process {
    /// Starts `jackd` with these words as the server `name`, and waits until it accepts clients.
    ///
    /// # Errors
    /// A message for the user. The server's own messages go to standard error.
    pub fn start(name: &str, words: &[String]) -> Result<Self, String> {
        let program = program();
        let mut command = Command::new(&program);
        command
            .arg0("jackd")
            .args(["--while-stdin-is-open", "-n", name])
            .args(words)
            // The server runs as long as this end of the pipe is open.
            .stdin(Stdio::piped())
            // The terminal's keys are meant for the program, not for the server.
            .process_group(0);
        let process =
            Helper::spawn(&mut command, Ending::CloseInput { timeout_ns: END_TIMEOUT_NS })
                .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut process = Self { process, name: name.into() };
        let end = Instant::now() + STARTING;
        while !process.accepts_clients() {
            match process.process.status() {
                Ok(None) => {}
                Ok(Some(status)) => {
                    return Err(format!("the server '{name}' did not start ({status})"));
                }
                Err(error) => return Err(error.to_string()),
            }
            if Instant::now() > end {
                return Err(format!("the server '{name}' does not accept clients"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(process)
    }

    /// Returns whether this server, and not another one of its name, accepts clients.
    fn accepts_clients(&self) -> bool {
        let status =
            Observer::open_running(Some(&self.name)).and_then(|observer| observer.status());
        status.is_ok_and(|status| status.process == self.process.id())
    }

    /// Returns whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Switches to the driver described by these words of `jackd`'s command line, and waits for it.
    ///
    /// # Errors
    /// The server's message. The previous driver then continues.
    pub fn switch(&self, words: &[String]) -> Result<(), String> {
        self.run_command("jackd", &["--switch", "-n", &self.name], words).map(drop)
    }

    /// Adds the device described by these words of `jackd`'s command line, and waits until it has
    /// joined the graph. Returns the name of its client.
    ///
    /// # Errors
    /// A message for the user.
    pub fn add_slave(&self, words: &[String]) -> Result<String, String> {
        self.run_command("jackd", &["--add-slave", "-n", &self.name], words)
    }

    /// Removes an added device by the name of its client, and waits until it is gone.
    ///
    /// # Errors
    /// A message for the user. The device may have left by itself.
    pub fn remove_slave(&self, client: &str) -> Result<(), String> {
        let words = ["remove".to_owned(), client.to_owned()];
        self.run_command("consort", &["--server", &self.name, "device"], &words).map(drop)
    }

    /// Runs the server's program under the name `called` and returns its output.
    fn run_command(
        &self,
        called: &str,
        options: &[&str],
        words: &[String],
    ) -> Result<String, String> {
        let program = program();
        let output = Command::new(&program)
            .arg0(called)
            .args(options)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        Err(said.strip_prefix(&format!("{called}: ")).unwrap_or(said).to_owned())
    }
}

/// Returns the program: `bin/consort` next to the `lib` of this library, or `consort` next to the
/// library in a build tree, or else the `jackd` in `PATH`.
fn program() -> PathBuf {
    let library = loaded_from(&["libjackserver.so"]);
    let directory = library.as_deref().and_then(Path::parent);
    let places =
        directory.map(|directory| [directory.join("../bin/consort"), directory.join("consort")]);
    let found = places.into_iter().flatten().find(|program| program.is_file());
    found.unwrap_or_else(|| "jackd".into())
}
