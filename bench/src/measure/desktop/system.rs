//! The sound systems of a desktop, each with a null device at 48 kHz, in directories of its own.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::arguments::{Kind, pipewires_library};
use crate::leashed::Leashed;
use crate::programs::Programs;
use crate::server::{Candidate, QUANTUM_FRAMES, RATE_HZ};
use crate::workplace::Workplace;

/// How long a process may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(20);
const START_POLL: Duration = Duration::from_millis(20);

/// What plays the sound of a desktop.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum System {
    /// `consort run` and `consort pulse`
    Consort,
    /// `pulseaudio`
    Pulseaudio,
    /// `pipewire`, `pipewire-pulse` and `wireplumber`
    Pipewire,
}

/// What a process of a system does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It plays.
    Server,
    /// It speaks PulseAudio's protocol for the server.
    FrontEnd,
    /// It decides what is connected.
    SessionManager,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Consort, Self::Pulseaudio, Self::Pipewire];

    /// Its name in the figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Consort => "consort",
            Self::Pulseaudio => "PulseAudio",
            Self::Pipewire => "PipeWire",
        }
    }

    /// How programs name its null device, and its monitor.
    pub fn sink_and_monitor(self) -> (&'static str, &'static str) {
        match self {
            Self::Consort => ("-", "consort.monitor"),
            Self::Pulseaudio | Self::Pipewire => ("bench", "bench.monitor"),
        }
    }

    /// The ports of its null device, as programs of JACK know them.
    pub fn jack_ports(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Consort => Some(["system:playback_1", "system:playback_2"]),
            Self::Pulseaudio => None,
            Self::Pipewire => Some(["bench:playback_FL", "bench:playback_FR"]),
        }
    }
}

/// A system that is installed.
pub struct Installed {
    /// Which one.
    pub system: System,
    /// Its version, as it states it.
    pub version: String,
    /// Its server's program.
    binary: PathBuf,
    /// Where its `libjack.so.0` is.
    library_directory: Option<PathBuf>,
}

impl Installed {
    /// Finds a system; consort is the first of that kind among `candidates`.
    pub fn find(system: System, candidates: &[Candidate]) -> Result<Self> {
        let named = |program: &str| -> Result<PathBuf> {
            let path = Path::new("/usr/bin").join(program);
            ensure!(
                path.exists(),
                "{} cannot be measured: there is no {} (xtask/setup/debian.sh installs it); or name \
                 the others with --system",
                system.name(),
                path.display()
            );
            Ok(path)
        };
        if system == System::Consort {
            let consort = candidates.iter().find(|candidate| candidate.kind == Kind::Consort);
            let Candidate { version, binary, library_directory, .. } = consort.context(
                "consort is not built: cargo build --release -p consort -p consort-libjack",
            )?;
            let (version, binary) = (version.clone(), binary.clone());
            let library_directory = library_directory.clone();
            return Ok(Self { system, version, binary, library_directory });
        }
        let (kind, binary, directory) = if system == System::Pulseaudio {
            (Kind::Jack2, named("pulseaudio")?, None)
        } else {
            for program in ["pipewire-pulse", "wireplumber", "dbus-daemon"] {
                named(program)?;
            }
            (Kind::PipeWire, named("pipewire")?, Some(pipewires_library()?))
        };
        let candidate = Candidate::new(kind, system.name().into(), binary.clone(), directory)?;
        let library_directory = candidate.library_directory;
        Ok(Self { system, version: candidate.version, binary, library_directory })
    }
}

/// A system that runs. Its processes end with this value.
pub struct Desktop<'a> {
    /// Which one.
    pub installed: &'a Installed,
    /// Its programs.
    pub programs: &'a Programs,
    /// Where it keeps its files, and what else is made for it.
    pub directory: PathBuf,
    processes: Vec<(Option<Role>, Leashed)>,
    command_line: String,
}

/// Where programs look for their settings in a desktop's directory: PulseAudio's server does so in
/// its home, whatever `XDG_CONFIG_HOME` says.
const SETTINGS: &str = ".config";
/// The name of a server of consort.
const SERVER: &str = "bench-desktop";

impl<'a> Desktop<'a> {
    /// Starts it and waits until it takes programs in. PipeWire's cycles have `pipewires_most`
    /// frames at most.
    pub fn start(
        installed: &'a Installed,
        programs: &'a Programs,
        workplace: &Workplace,
        pipewires_most: u32,
    ) -> Result<Self> {
        let name = format!("desktop-{}", installed.system.name());
        let directory = workplace.directory(&name)?;
        for part in ["run", SETTINGS, "state"] {
            workplace.directory(&format!("{name}/{part}"))?;
        }
        let mut this = Self {
            installed,
            programs,
            directory,
            processes: Vec::new(),
            command_line: String::new(),
        };
        match installed.system {
            System::Consort => this.start_consort()?,
            System::Pulseaudio => this.start_pulseaudio()?,
            System::Pipewire => this.start_pipewire(pipewires_most)?,
        }
        Ok(this)
    }

    fn start_consort(&mut self) -> Result<()> {
        let consort = self.installed.binary.display().to_string();
        let run = format!("{consort} run -n {SERVER} --driver timer --quantum {QUANTUM_FRAMES}");
        self.run(Some(Role::Server), &run)?;
        let deadline = Instant::now() + START_LIMIT;
        while !self.consort(&["status"])?.status.success() {
            ensure!(Instant::now() < deadline, "consort does not answer:\n{}", self.said());
            std::thread::sleep(START_POLL);
        }
        self.run(Some(Role::FrontEnd), &format!("{consort} pulse -n {SERVER}"))?;
        self.await_socket("pulse/native")
    }

    fn start_pulseaudio(&mut self) -> Result<()> {
        // With its default of 200 ms the kernel may kill it when many streams begin at once.
        self.configure("pulse/daemon.conf", "rlimit-rttime = -1\n")?;
        let pulseaudio = self.installed.binary.display();
        // As default.pa has it, without cards; in the format of what is played.
        let mut line: Vec<String> = format!(
            "{pulseaudio} -n --daemonize=no --use-pid-file=no --exit-idle-time=-1 --realtime=yes"
        )
        .split(' ')
        .map(String::from)
        .collect();
        for module in [
            &format!("module-null-sink sink_name=bench rate={RATE_HZ} channels=2"),
            "module-native-protocol-unix auth-anonymous=1",
            "module-suspend-on-idle",
        ] {
            line.extend([String::from("-L"), String::from(module)]);
        }
        self.run_words(Some(Role::Server), &line)?;
        self.await_socket("pulse/native")
    }

    fn start_pipewire(&mut self, most: u32) -> Result<()> {
        self.configure("pipewire/pipewire.conf.d/bench.conf", &pipewires_configuration(most))?;
        // No cards: the null device is the only one.
        self.configure(
            "wireplumber/main.lua.d/51-bench.lua",
            "alsa_monitor.enabled = false\nv4l2_monitor.enabled = false\n\
             libcamera_monitor.enabled = false\n",
        )?;
        self.configure(
            "wireplumber/bluetooth.lua.d/51-bench.lua",
            "bluez_monitor.enabled = false\n",
        )?;
        let bus = self.bus();
        self.run(
            None,
            &format!("/usr/bin/dbus-daemon --session --nofork --nopidfile --address={bus}"),
        )?;
        self.await_socket("bus")?;
        self.run(Some(Role::Server), &self.installed.binary.display().to_string())?;
        self.await_socket("pipewire-0")?;
        self.run(Some(Role::SessionManager), "/usr/bin/wireplumber")?;
        self.run(Some(Role::FrontEnd), "/usr/bin/pipewire-pulse")?;
        self.await_socket("pulse/native")?;
        // The session manager has to know the null device before it connects a program with it.
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    }

    /// Writes a file where its processes look for their settings.
    fn configure(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(SETTINGS).join(name);
        let parent = path.parent().context("a path without a directory")?;
        std::fs::create_dir_all(parent)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn bus(&self) -> String {
        format!("unix:path={}", self.runtime_directory().join("bus").display())
    }

    fn runtime_directory(&self) -> PathBuf {
        self.directory.join("run")
    }

    fn run(&mut self, role: Option<Role>, line: &str) -> Result<()> {
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        self.run_words(role, &words)
    }

    fn run_words(&mut self, role: Option<Role>, line: &[String]) -> Result<()> {
        let process = self.leashed(&format!("process-{}", self.processes.len()), line)?;
        self.processes.push((role, process));
        if role.is_some() {
            let separator = if self.command_line.is_empty() { "" } else { "; " };
            self.command_line.push_str(separator);
            self.command_line.push_str(&line.join(" "));
        }
        Ok(())
    }

    /// Starts a program of this desktop that ends with the benchmark.
    pub fn leashed(&self, name: &str, line: &[String]) -> Result<Leashed> {
        let log = self.directory.join(format!("{name}.log"));
        Leashed::start(self.programs, name, &log, line, |command| self.set_environment(command))
    }

    /// What a program needs to find this desktop, and nothing of another.
    pub fn set_environment(&self, command: &mut Command) {
        let run = self.runtime_directory();
        command
            .env("XDG_RUNTIME_DIR", &run)
            .env("XDG_CONFIG_HOME", self.directory.join(SETTINGS))
            .env("XDG_STATE_HOME", self.directory.join("state"))
            .env("HOME", &self.directory)
            .env("PULSE_SERVER", format!("unix:{}", run.join("pulse/native").display()))
            .env("DBUS_SESSION_BUS_ADDRESS", self.bus())
            .env_remove("DISPLAY")
            .env_remove("LD_LIBRARY_PATH");
    }

    /// Makes `command` a program of this desktop's JACK.
    pub fn set_jack(&self, command: &mut Command) {
        self.set_environment(command);
        if let Some(directory) = &self.installed.library_directory {
            command.env("LD_LIBRARY_PATH", directory);
        }
        command.env("JACK_NO_START_SERVER", "1");
        if self.installed.system == System::Consort {
            command.env("JACK_DEFAULT_SERVER", SERVER);
        } else {
            command.env("PIPEWIRE_LATENCY", format!("{QUANTUM_FRAMES}/{RATE_HZ}"));
        }
    }

    /// The words of a command of consort about this server.
    pub fn consort_line(&self, words: &[&str]) -> Vec<String> {
        let binary = self.installed.binary.display().to_string();
        let (command, rest) = words.split_first().unwrap_or((&"status", &[]));
        let mut line = vec![binary, (*command).into(), "-n".into(), SERVER.into()];
        line.extend(rest.iter().map(|word| String::from(*word)));
        line
    }

    fn consort(&self, words: &[&str]) -> Result<std::process::Output> {
        let line = self.consort_line(words);
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        self.set_environment(&mut command);
        command.output().context("cannot run consort")
    }

    fn await_socket(&self, name: &str) -> Result<()> {
        let path = self.runtime_directory().join(name);
        let deadline = Instant::now() + START_LIMIT;
        while UnixStream::connect(&path).is_err() {
            let system = self.installed.system.name();
            ensure!(Instant::now() < deadline, "{system} has no {name}:\n{}", self.said());
            std::thread::sleep(START_POLL);
        }
        Ok(())
    }

    fn said(&self) -> String {
        self.processes.iter().map(|(_, process)| process.said()).collect()
    }

    /// The processes of this role.
    pub fn pids(&self, role: Role) -> Vec<u32> {
        let of_role = self.processes.iter().filter(|(its, _)| *its == Some(role));
        of_role.map(|(_, process)| process.pid).collect()
    }

    /// How it was started.
    pub fn command_line(&self) -> &str {
        &self.command_line
    }

    /// Ends it, what was started last first, and returns whether all of it ended in order.
    pub fn stop(mut self) -> Result<()> {
        while let Some((_, mut process)) = self.processes.pop() {
            process.stop()?;
        }
        Ok(())
    }
}

impl Drop for Desktop<'_> {
    fn drop(&mut self) {
        while let Some((_, mut process)) = self.processes.pop() {
            process.end();
        }
    }
}

/// Cycles of 32 frames to `most`, as if on metal, and a null device.
fn pipewires_configuration(most: u32) -> String {
    format!(
        "context.properties = {{\n\
         default.clock.rate = {RATE_HZ}\n\
         default.clock.allowed-rates = [ {RATE_HZ} ]\n\
         default.clock.min-quantum = 32\n\
         default.clock.max-quantum = {most}\n\
         vm.overrides = {{ default.clock.min-quantum = 32 }}\n\
         }}\n\
         context.objects = [ {{ factory = adapter args = {{\n\
         factory.name = support.null-audio-sink node.name = bench node.description = bench\n\
         media.class = Audio/Sink audio.position = [ FL FR ] object.linger = true\n\
         }} }} ]\n"
    )
}
