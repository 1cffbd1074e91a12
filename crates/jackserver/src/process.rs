//! A server's process: `jackd` of the installation that this library belongs to.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Observer;
use sys::library::loaded_from;

/// How long a server may take to start.
const STARTING: Duration = Duration::from_secs(15);
/// How long it may take to end: it lets plug-ins finish.
const ENDING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// A server that runs as long as this lives.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The server's name.
    pub name: String,
}

impl Process {
    /// Starts `jackd` with these words as the server `name`, and waits until it takes programs in.
    ///
    /// # Errors
    /// In words. What the server itself has to say it says on standard error.
    pub fn start(name: &str, words: &[String]) -> Result<Self, String> {
        let program = program();
        let child = Command::new(&program)
            .arg0("jackd")
            .args(["--while-stdin-is-open", "-n", name])
            .args(words)
            // Holding the other end is what keeps the server running.
            .stdin(Stdio::piped())
            // What is typed for the program is not meant for it.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut process = Self { child, name: name.into() };
        let end = Instant::now() + STARTING;
        while !process.takes_programs_in() {
            match process.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return Err(format!("the server '{name}' did not start ({status})")),
                Err(error) => return Err(error.to_string()),
            }
            if Instant::now() > end {
                return Err(format!("the server '{name}' does not take programs in"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(process)
    }

    /// Whether this very server answers, and no other of its name.
    fn takes_programs_in(&self) -> bool {
        let status = Observer::open(Some(&self.name)).and_then(|observer| observer.status());
        status.is_ok_and(|status| status.process == self.child.id())
    }

    /// Whether it has not ended by itself.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Has it go on with the driver that these words of `jackd`'s command line ask for, and waits until it does.
    ///
    /// # Errors
    /// In the server's words. Then the driver before goes on.
    pub fn switch(&self, words: &[String]) -> Result<(), String> {
        self.tell("jackd", &["--switch", "-n", &self.name], words).map(drop)
    }

    /// Adds the device of a driver, which these words of `jackd`'s command line ask for, and waits until it has joined the
    /// graph. Gives its client's name.
    ///
    /// # Errors
    /// In the words of who refused it.
    pub fn add_slave(&self, words: &[String]) -> Result<String, String> {
        self.tell("jackd", &["--add-slave", "-n", &self.name], words)
    }

    /// Removes a device that was added, by its client's name, and waits until it has gone.
    ///
    /// # Errors
    /// In words. It may have left by itself.
    pub fn remove_slave(&self, client: &str) -> Result<(), String> {
        let words = ["remove".to_owned(), client.to_owned()];
        self.tell("consort", &["--server", &self.name, "device"], &words).map(drop)
    }

    /// Runs the server's program by the name `called`, and gives what it has printed.
    fn tell(&self, called: &str, options: &[&str], words: &[String]) -> Result<String, String> {
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

impl Drop for Process {
    /// Has it stop in order, and waits for that.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let end = Instant::now() + ENDING;
        while self.is_running() && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `bin/consort` beside the `lib` of this library, or `consort` beside the library in a build tree, else the `jackd` in
/// `PATH`.
fn program() -> PathBuf {
    let library = loaded_from(&["libjackserver.so"]);
    let directory = library.as_deref().and_then(Path::parent);
    let places = directory.map(|directory| [directory.join("../bin/consort"), directory.join("consort")]);
    let found = places.into_iter().flatten().find(|program| program.is_file());
    found.unwrap_or_else(|| "jackd".into())
}
