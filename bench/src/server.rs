//! Servers: how each kind is started, and how one is kept no longer than the benchmark lives.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::arguments::Kind;
use crate::client::{Node, Patcher};
use crate::leashed::Leashed;
use crate::programs::Programs;
use crate::workplace::Workplace;

/// Frames per cycle, unless a measurement uses another quantum.
pub const QUANTUM_FRAMES: u32 = 64;
/// Frames per second in every measurement.
pub const RATE_HZ: u32 = 48_000;
/// The nominal length of a cycle of [`QUANTUM_FRAMES`].
pub const PERIOD_NS: u64 = period_ns(QUANTUM_FRAMES);

/// The nominal length of a cycle.
pub const fn period_ns(quantum_frames: u32) -> u64 {
    quantum_frames as u64 * 1_000_000_000 / RATE_HZ as u64
}

/// How a server is started.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether a cycle's sound is played in the same cycle.
    pub sync: bool,
    /// The number of ports, at least.
    pub ports: u32,
    /// Frames per cycle.
    pub quantum_frames: u32,
    /// Whether it places clients on CPUs, if it can.
    pub placement: bool,
}

impl Settings {
    /// The settings of most measurements.
    pub fn new(sync: bool) -> Self {
        Self { sync, ports: DEFAULT_PORTS, quantum_frames: QUANTUM_FRAMES, placement: true }
    }
}

/// A server that can be started.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which command line it understands.
    pub kind: Kind,
    /// Its name in the figures.
    pub name: String,
    /// Its version, as it reports it.
    pub version: String,
    /// Its program.
    pub binary: PathBuf,
    /// Where its `libjack.so.0` is; `None`: where the loader finds one.
    pub library_directory: Option<PathBuf>,
}

impl Candidate {
    /// Asks the program for its version.
    pub fn new(
        kind: Kind,
        name: String,
        binary: PathBuf,
        library_directory: Option<PathBuf>,
    ) -> Result<Self> {
        let mut candidate = Self { kind, name, version: String::new(), binary, library_directory };
        let mut command = Command::new(&candidate.binary);
        candidate.set_library(&mut command);
        let output = command
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {}", candidate.binary.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        candidate.version = version_in(&text).unwrap_or_else(|| String::from("unknown"));
        Ok(candidate)
    }

    fn set_library(&self, command: &mut Command) {
        match &self.library_directory {
            Some(directory) => command.env("LD_LIBRARY_PATH", directory),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
    }

    /// Its command line for a server called `name`.
    fn command_line(&self, name: &str, settings: &Settings) -> Vec<String> {
        let Settings { sync, ports, quantum_frames, placement } = *settings;
        let binary = self.binary.to_string_lossy().into_owned();
        let mut line = vec![binary];
        let mut add = |words: &str| line.extend(words.split(' ').map(String::from));
        match self.kind {
            Kind::Consort | Kind::Trusting => {
                add(&format!("run -n {name} --quantum {quantum_frames}"));
                if sync {
                    add("--sync");
                }
                if ports > DEFAULT_PORTS {
                    add("--port-max 8192");
                }
                if !placement {
                    add("--placement off");
                }
                if self.kind == Kind::Trusting {
                    add("--trust-programs");
                }
            }
            Kind::Jack2 => {
                add(&format!("-n {name} -R"));
                if sync {
                    add("-S");
                }
                if ports > DEFAULT_PORTS {
                    // The maximum that it accepts.
                    add("-p 4096");
                }
                add(&format!("-d dummy -r {RATE_HZ} -p {quantum_frames}"));
            }
            // Its configuration file has all of its settings.
            Kind::PipeWire => {}
        }
        line
    }

    /// Writes the part of the configuration for which the command line has no option.
    fn configure(&self, directory: &Path, settings: &Settings) -> Result<()> {
        if self.kind != Kind::PipeWire {
            return Ok(());
        }
        let parts = directory.join("pipewire/pipewire.conf.d");
        std::fs::create_dir_all(&parts)?;
        Ok(std::fs::write(
            parts.join("bench.conf"),
            pipewires_configuration(settings.quantum_frames),
        )?)
    }
}

/// One quantum and no other, also in a virtual machine, where it would be 1,024 frames at least.
fn pipewires_configuration(quantum_frames: u32) -> String {
    format!(
        "context.properties = {{\n\
         default.clock.rate = {RATE_HZ}\n\
         default.clock.allowed-rates = [ {RATE_HZ} ]\n\
         default.clock.quantum = {quantum_frames}\n\
         default.clock.min-quantum = {quantum_frames}\n\
         default.clock.max-quantum = {quantum_frames}\n\
         vm.overrides = {{ default.clock.min-quantum = {quantum_frames} }}\n\
         }}\n"
    )
}

/// All kinds of servers allow this many ports by default.
const DEFAULT_PORTS: u32 = 1024;

/// The first word with a digit and a full stop in it.
fn version_in(text: &str) -> Option<String> {
    let is_version =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    text.split_ascii_whitespace().find(is_version).map(String::from)
}

/// A running server. It ends with this value, and also when this process is killed.
pub struct Server<'a> {
    /// What was started.
    pub candidate: &'a Candidate,
    /// The process id of the server itself.
    pub pid: u32,
    /// How it was started.
    pub command_line: String,
    name: String,
    runtime_directory: PathBuf,
    programs: &'a Programs,
    process: Leashed,
}

impl<'a> Server<'a> {
    /// Starts it and waits until it takes clients; that first client is returned with it.
    pub fn start(
        candidate: &'a Candidate,
        programs: &'a Programs,
        workplace: &Workplace,
        settings: &Settings,
    ) -> Result<(Self, Patcher)> {
        let name = format!("bench-{}", candidate.name);
        let line = candidate.command_line(&name, settings);
        let log = workplace.file(&format!("{name}.log"));
        let runtime_directory = workplace.directory("run")?;
        let configuration = workplace.directory("configuration")?;
        candidate.configure(&configuration, settings)?;
        let process = Leashed::start(programs, &name, &log, &line, |command| {
            command.env("XDG_RUNTIME_DIR", &runtime_directory);
            command.env("XDG_CONFIG_HOME", &configuration);
            candidate.set_library(command);
        })?;
        let server = Self {
            candidate,
            pid: process.pid,
            command_line: line.join(" "),
            name,
            runtime_directory,
            programs,
            process,
        };
        match server.patcher("patcher") {
            Ok(patcher) => Ok((server, patcher)),
            Err(error) => {
                bail!("{error:#}; the server said:\n{}", server.process.said())
            }
        }
    }

    fn client_command(&self, program: &PathBuf) -> Command {
        let mut command = Command::new(program);
        command
            .env("XDG_RUNTIME_DIR", &self.runtime_directory)
            .env("JACK_DEFAULT_SERVER", &self.name)
            .env("JACK_NO_START_SERVER", "1")
            .stderr(std::process::Stdio::null());
        self.candidate.set_library(&mut command);
        command
    }

    /// Starts a client that connects and watches.
    pub fn patcher(&self, name: &str) -> Result<Patcher> {
        Patcher::spawn(name, &mut self.client_command(&self.programs.patcher))
    }

    /// Starts a client of the graph; it is not yet known to be active.
    pub fn node(&self, name: &str, arguments: &[String]) -> Result<Node> {
        Node::spawn(name, self.client_command(&self.programs.node).args([name]).args(arguments))
    }

    /// Ends it and returns whether it ended in order.
    pub fn stop(mut self) -> Result<()> {
        self.process.stop()?;
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.process.end();
        if self.candidate.kind == Kind::Jack2 {
            remove_semaphores(&self.name);
        }
    }
}

/// JACK2 leaves `/dev/shm/jack_sem.UID_SERVER_CLIENT` behind for clients that were killed, and no
/// later start removes them. The server's name is the benchmark's own.
fn remove_semaphores(server: &str) {
    for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("jack_sem.") && name.contains(&format!("_{server}_")) {
            // Another user's file stays.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(kind: Kind) -> Candidate {
        let binary = PathBuf::from("/bin/server");
        Candidate { kind, name: "x".into(), version: "1".into(), binary, library_directory: None }
    }

    #[test]
    fn each_kind_is_started_in_its_own_words() {
        let line = |kind, sync, ports| {
            let settings = Settings { ports, ..Settings::new(sync) };
            candidate(kind).command_line("n", &settings).join(" ")
        };
        assert_eq!(line(Kind::Consort, false, 100), "/bin/server run -n n --quantum 64");
        assert_eq!(
            line(Kind::Consort, true, 4000),
            "/bin/server run -n n --quantum 64 --sync --port-max 8192"
        );
        assert_eq!(
            line(Kind::Trusting, false, 100),
            "/bin/server run -n n --quantum 64 --trust-programs"
        );
        assert_eq!(line(Kind::Jack2, false, 100), "/bin/server -n n -R -d dummy -r 48000 -p 64");
        assert_eq!(
            line(Kind::Jack2, true, 4000),
            "/bin/server -n n -R -S -p 4096 -d dummy -r 48000 -p 64"
        );
        assert_eq!(line(Kind::PipeWire, false, 100), "/bin/server");
    }

    #[test]
    fn the_version_is_found_among_other_words() {
        assert_eq!(version_in("jackdmp 1.9.21\nCopyright 2001-2005"), Some("1.9.21".into()));
        assert_eq!(version_in("pipewire\nCompiled with libpipewire 0.3.65"), Some("0.3.65".into()));
        assert_eq!(
            version_in("jackdmp version 1.9.21 tmpdir /dev/shm protocol 8"),
            Some("1.9.21".into())
        );
        assert_eq!(version_in("nothing"), None);
    }
}
