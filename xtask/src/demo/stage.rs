//! A server and programs that know of no other, in a directory of their own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

/// How long the demonstration waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// A program of the demonstration. It is killed when this is dropped.
pub(super) struct Running(pub Child);

impl Running {
    /// Starts `command`; `what` is it for users.
    pub fn start(mut command: Command, what: &str) -> Result<Self> {
        Ok(Self(command.spawn().with_context(|| format!("{what} does not start"))?))
    }

    /// Waits until it ends by itself, for longer than any recording here plays.
    pub fn finish(mut self, what: &str) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait()? {
                ensure!(status.success(), "{what} failed: {status}");
                return Ok(());
            }
            ensure!(Instant::now() < end, "{what} does not end");
            std::thread::sleep(INTERVAL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the programs run.
pub(super) struct Stage {
    directory: TempDir,
    target: PathBuf,
}

impl Stage {
    /// With the programs that cargo built in `target`.
    pub fn new(target: &Path) -> Result<Self> {
        Ok(Self { directory: tempfile::tempdir()?, target: target.to_owned() })
    }

    /// A file of the stage.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Any program, which finds this server and no other of this machine.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env("XDG_RUNTIME_DIR", self.directory.path())
            .env("JACK_DEFAULT_SERVER", "demo")
            .stdin(Stdio::null());
        for variable in ["PULSE_SERVER", "PULSE_SINK", "PULSE_LATENCY_MSEC"] {
            command.env_remove(variable);
        }
        command
    }

    /// A program that cargo built.
    pub fn built(&self, name: &str) -> Command {
        self.command(self.target.join(name))
    }

    /// Starts a server with cycles of 128 frames and these options.
    pub fn server(&self, prepare: impl FnOnce(&mut Command)) -> Result<Running> {
        let mut command = self.built("consort");
        command.args(["run", "--quantum", "128"]);
        prepare(&mut command);
        let server = Running::start(command, "the server")?;
        self.await_that("the server runs", || self.consort(&["status"]).is_ok())?;
        Ok(server)
    }

    /// Starts the example that makes its input softer, connected to the port `to`.
    pub fn gain(&self, factor: f32, to: &str) -> Result<Running> {
        let mut command = self.built("examples/gain");
        command.args(["--factor", &factor.to_string(), "--seconds", "60", "--to", to]);
        Running::start(command, "the example")
    }

    /// What a command of `consort` prints.
    pub fn consort(&self, arguments: &[&str]) -> Result<String> {
        let output = self.built("consort").args(arguments).output()?;
        ensure!(
            output.status.success(),
            "consort {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Waits until a port is connected.
    pub fn await_connection(&self, port: &str) -> Result<()> {
        let connected = || {
            let listed = self.consort(&["ls", "--json", "--connections"]).unwrap_or_default();
            let ports: Value = serde_json::from_str(&listed).unwrap_or_default();
            let ports = ports.as_array().cloned().unwrap_or_default();
            ports.iter().any(|entry| {
                entry["name"] == port
                    && entry["connections"].as_array().is_some_and(|others| !others.is_empty())
            })
        };
        self.await_that(&format!("{port} is connected"), connected)
    }

    /// Waits until something holds.
    pub fn await_that(&self, what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            if Instant::now() > end {
                bail!("it never happened that {what}");
            }
            std::thread::sleep(INTERVAL);
        }
        Ok(())
    }
}
