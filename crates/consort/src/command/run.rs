//! `consort run`: the server itself.

mod alsa;
mod driver;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use cli::{UsageError, in_range};
use device_bridge::DeviceOptions;
use engine::policy::Policy;
use engine::{Config, SelfConnect, StateFile};
use jackd::{InternalClient, StartupLoad};
use proto::defaults;
use proto::limits::{PORT_MAX, QUANTUM_FRAMES, REALTIME_PRIORITY};
use state::State;
use sys::interrupts::MovedInterrupts;
use sys::thread::CpuSet;

use crate::companions::Companions;
use crate::front_end::FrontEndArguments;
use crate::page::PageArguments;
pub(crate) use driver::{DriverArguments, DriverName};

/// Run a server until it is stopped
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort run --quantum 64
  consort run --pulse
  consort run --driver alsa --device hw:USB --quantum 64 --periods 3
  consort run --driver file --input song.wav --output mix.wav --fast")]
pub(crate) struct Run {
    /// What starts the cycles: a sound card, a timer, or sound files
    #[arg(long, value_enum, default_value = "timer")]
    driver: DriverName,
    #[command(flatten)]
    options: DriverArguments,
    /// Length of a cycle in frames [default: 1024; with --state: the saved one]
    #[arg(long, value_name = "FRAMES", value_parser = in_range(QUANTUM_FRAMES))]
    quantum: Option<u32>,
    /// Play the result of each cycle in the same cycle: one quantum less latency, but no tolerance
    /// for a late client
    #[arg(short = 'S', long)]
    sync: bool,
    /// SCHED_FIFO priority of the driver
    #[arg(long, value_name = "N", default_value_t = defaults::REALTIME_PRIORITY, value_parser = in_range(REALTIME_PRIORITY))]
    realtime_priority: u32,
    /// Use no real-time scheduling
    #[arg(long, conflicts_with = "realtime_priority")]
    no_realtime: bool,
    /// How long a client may be late before it is left out, in ms [default: 3 quanta, at least 20
    /// ms]
    #[arg(long, value_name = "MS", value_parser = in_range(1..=u32::MAX))]
    client_timeout: Option<u32>,
    /// How long programs wait, in ms, for another server of this name if this one dies. Then their
    /// shutdown callbacks are called. CONSORT_GRACE_MS in a program's environment overrides it
    #[arg(long, value_name = "MS", default_value_t = defaults::GRACE_MS)]
    grace: u32,
    /// Close the sound card after this many seconds without anything that plays; 0: never. It is
    /// opened again when a program plays
    #[arg(long, value_name = "SECONDS", default_value_t = defaults::SUSPEND_S)]
    suspend: u32,
    /// Number of ports that the server has room for
    #[arg(long, value_name = "N", default_value_t = defaults::PORT_MAX, value_parser = in_range(PORT_MAX))]
    port_max: u32,
    /// Number of ports that one client can have [default: three quarters of --port-max]
    #[arg(long, value_name = "N", value_parser = in_range(1..=*PORT_MAX.end()))]
    client_ports: Option<u32>,
    /// Add another card with its own clock, or MIDI: "seq" is all ports of ALSA's sequencer, "raw"
    /// all raw devices; or "null", a device without hardware for streams. Repeatable; consort
    /// device add has options for it. If the device fails, the reason is printed and the server
    /// runs without it
    #[arg(long, value_name = "DEVICE")]
    add_device: Vec<String>,
    /// Add another card as a device for streams, as consort device add --streams does: a sink if it
    /// plays, and a source if it captures, of PulseAudio's programs. "all": each card, also those
    /// that are plugged in later. Repeatable. If it fails, the reason is printed and the
    /// server runs without it
    #[arg(long, value_name = "DEVICE")]
    stream_card: Vec<String>,
    /// Load a plug-in (an internal client) at the start: [NAME:]OBJECT[/PARAMETERS]; repeatable. If
    /// it fails, the server ends
    #[arg(short = 'I', long, value_name = "PLUG-IN")]
    internal_client: Vec<InternalClient>,
    /// Then load the plug-ins (l NAME OBJECT PARAMETERS) and make the connections (c SOURCE
    /// DESTINATION) of this file, one per line
    #[arg(short = 'C', long, value_name = "FILE")]
    internal_session_file: Option<PathBuf>,
    /// End when the last client has left
    #[arg(long)]
    temporary: bool,
    /// Refuse connections that close a loop, instead of delaying them by a cycle
    #[arg(long)]
    no_feedback: bool,
    /// What a client may do with its own ports
    #[arg(long, value_enum, default_value = "allow")]
    self_connect: SelfConnectName,
    /// Pin each program's process thread to a CPU, chosen from measured durations
    #[arg(long, value_enum, default_value = "on")]
    placement: Switch,
    /// CPUs for the driver and the programs' process threads, such as 0-3,5; isolated CPUs
    /// (isolcpus) can be named, too [default: one hardware thread of each of the machine's fastest
    /// cores]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Move interrupts to the other CPUs until the server ends, as far as the kernel allows (needs
    /// root)
    #[arg(long, requires = "cpus")]
    move_interrupts: bool,
    /// Let the kernel trace context switches (tracefs, needs root), so that the report of an xrun
    /// names the threads that had the CPU. Each switch then takes some tenths of a microsecond
    /// longer
    #[arg(long)]
    trace_switches: bool,
    /// Also serve the members of this Unix group. Their programs find the server through
    /// JACK_PROMISCUOUS_SERVER=GROUP
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    #[command(flatten)]
    page: PageArguments,
    #[command(flatten)]
    front_end: FrontEndArguments,
    /// Keep the state in this file and start with it: connections, aliases and properties, also of
    /// programs that have left and may come back; volumes of devices and streams, by their names;
    /// the transport's position; and the quantum. If the file holds something else, it is left
    /// alone and the server does not start
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// File of permissions. Each line is a rule: everything, nothing, or some of
    /// connect,patch,play,record,capture,control; then uid=N gid=N exe=PATH cgroup=PATH, all of
    /// which must match (* stands for any text). The first rule that matches decides; a program
    /// that none matches may do nothing. Without a policy a program may do everything, unless it
    /// is confined (a sandbox): then it cannot have the server open files and devices or load
    /// plug-ins
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Take it that no program uses what it is given against another. A hop from client to client
    /// then needs no timer, which makes it about a tenth shorter; and a hostile program can silence
    /// for good the clients that it feeds
    #[arg(long, conflicts_with_all = ["policy", "group"])]
    trust_programs: bool,
    /// Print more on standard error
    #[arg(short, long)]
    verbose: bool,
    /// End when standard input ends: the program that started the server holds the other end
    #[arg(long, hide = true)]
    while_stdin_is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Enabled
    On,
    /// Disabled
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SelfConnectName {
    /// Make them
    Allow,
    /// Refuse connections to other clients' ports
    FailExternal,
    /// Ignore connections to other clients' ports; report success
    IgnoreExternal,
    /// Refuse all
    FailAll,
    /// Ignore all; report success
    IgnoreAll,
}

fn read_policy(path: &Path) -> anyhow::Result<Policy> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Policy::parse(&text).map_err(|error| UsageError(format!("{}: {error}", path.display())))?)
}

impl Run {
    pub(crate) fn run(self, server: String) -> anyhow::Result<ExitCode> {
        let config = self.config(server)?;
        // Must happen before the termination signals are blocked.
        let interrupts = self.move_interrupts()?;
        let in_graph = self.add_device.iter().map(|device| DeviceOptions::of(device));
        let for_streams = self.stream_card.iter();
        let for_streams = for_streams.map(|device| DeviceOptions::card_for_streams(device));
        let companions = Companions {
            page: self.page,
            front_end: self.front_end,
            devices: in_graph.chain(for_streams).collect(),
            startup: StartupLoad {
                plug_ins: self.internal_client,
                session: self.internal_session_file,
            },
            while_stdin_is_open: self.while_stdin_is_open,
            notices: interrupts.iter().map(moved_interrupts).collect(),
        };
        companions.run_server(config)
    }

    /// Moves interrupts away; they move back when the value is dropped.
    fn move_interrupts(&self) -> anyhow::Result<Option<MovedInterrupts>> {
        let Some(cpus) = self.cpus.as_ref().filter(|_| self.move_interrupts) else {
            return Ok(None);
        };
        let moved = MovedInterrupts::away_from(cpus)
            .with_context(|| format!("cannot move interrupts away from the CPUs {cpus}"))?;
        Ok(Some(moved))
    }

    /// Checks that the ports that the options ask for fit --port-max.
    fn check_room(&self) -> Result<(), UsageError> {
        let port_max = self.port_max;
        let (capture, playback) = self.options.channels();
        for (option, asked, most) in [
            ("--capture", capture, port_max / 2),
            ("--playback", playback, port_max / 2),
            ("--client-ports", self.client_ports, port_max),
        ] {
            if let Some(asked) = asked.filter(|asked| *asked > most) {
                let message = format!(
                    "{option} {asked} is too much: with --port-max {port_max}, the limit is {most}"
                );
                return Err(UsageError(message));
            }
        }
        Ok(())
    }

    fn config(&self, name: String) -> anyhow::Result<Config> {
        let driver = self.options.choice(self.driver)?;
        self.check_room()?;
        let state = self.state.as_deref().map(kept_state).transpose()?;
        let quantum = self.quantum.or_else(|| state.as_ref().and_then(|kept| kept.state.quantum));
        Ok(Config {
            name,
            driver,
            quantum: quantum.unwrap_or(defaults::QUANTUM_FRAMES),
            sync: self.sync,
            realtime_priority: (!self.no_realtime).then_some(self.realtime_priority),
            client_timeout_ms: self.client_timeout,
            grace_ms: self.grace,
            suspend_s: self.suspend,
            port_max: self.port_max,
            client_ports: self.client_ports,
            temporary: self.temporary,
            feedback: !self.no_feedback,
            verbose: self.verbose,
            trace_switches: self.trace_switches,
            self_connect: self.self_connect.into(),
            placement: self.placement == Switch::On,
            group: self.group.clone(),
            cpus: self.cpus.map(Box::new),
            state,
            policy: self.policy.as_deref().map(read_policy).transpose()?.unwrap_or_default(),
            trusts_programs: self.trust_programs,
        })
    }
}

fn moved_interrupts(moved: &MovedInterrupts) -> String {
    let (count, others, unmovable) = (moved.moved(), &moved.others, moved.unmovable);
    format!("consort: {count} interrupts moved to the CPUs {others}, {unmovable} cannot be moved")
}

/// Reads the state file, if it exists. Its path becomes absolute, since the server may run in
/// another directory.
fn kept_state(path: &Path) -> anyhow::Result<Box<StateFile>> {
    let path = std::path::absolute(path).with_context(|| format!("--state {}", path.display()))?;
    let found = path.metadata();
    // A pipe, for instance, cannot be read twice, and writing to it would wait for a reader.
    if found.as_ref().is_ok_and(|found| !found.is_file()) {
        bail!(
            "cannot keep the state in {}: it is not a regular file; name one, or a file that does not exist yet",
            path.display()
        );
    }
    let missing = found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let state = if missing { State::default() } else { state::read(&path)? };
    Ok(Box::new(StateFile { path, state }))
}

impl From<SelfConnectName> for SelfConnect {
    fn from(name: SelfConnectName) -> Self {
        match name {
            SelfConnectName::Allow => Self::Allow,
            SelfConnectName::FailExternal => Self::FailExternal,
            SelfConnectName::IgnoreExternal => Self::IgnoreExternal,
            SelfConnectName::FailAll => Self::FailAll,
            SelfConnectName::IgnoreAll => Self::IgnoreAll,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proto::driver::DriverChoice;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        run: Run,
    }

    fn parse(words: &str) -> Result<Config, String> {
        let alone = Alone::try_parse_from(std::iter::once("run").chain(words.split_whitespace()));
        let config =
            alone.map_err(anyhow::Error::from).and_then(|alone| alone.run.config("default".into()));
        config.map_err(|error| error.to_string())
    }

    #[test]
    fn each_option_changes_only_what_it_names() {
        let file = DriverChoice::File {
            input: Some("in.wav".into()),
            output: None,
            sample_rate_hz: None,
            playback: Some(1),
            fast: true,
            monitors: false,
        };
        for (words, expected) in [
            ("", Config::default()),
            (
                "--capture 0 --playback 32 --rate 44100",
                Config {
                    driver: DriverChoice::Timer {
                        capture: 0,
                        playback: 32,
                        sample_rate_hz: Some(44_100),
                        looped: false,
                        monitors: false,
                    },
                    ..Config::default()
                },
            ),
            (
                "--loop",
                Config {
                    driver: DriverChoice::Timer {
                        capture: 2,
                        playback: 2,
                        sample_rate_hz: None,
                        looped: true,
                        monitors: false,
                    },
                    ..Config::default()
                },
            ),
            (
                "--driver file --input in.wav --playback 1 --fast",
                Config { driver: file, ..Config::default() },
            ),
            ("--quantum 1", Config { quantum: 1, ..Config::default() }),
            ("-S", Config { sync: true, ..Config::default() }),
            ("--realtime-priority 70", Config { realtime_priority: Some(70), ..Config::default() }),
            ("--no-realtime", Config { realtime_priority: None, ..Config::default() }),
            ("--client-timeout 500", Config { client_timeout_ms: Some(500), ..Config::default() }),
            ("--client-ports 8", Config { client_ports: Some(8), ..Config::default() }),
            ("--suspend 0", Config { suspend_s: 0, ..Config::default() }),
            ("--port-max 64", Config { port_max: 64, ..Config::default() }),
            ("--temporary -v", Config { temporary: true, verbose: true, ..Config::default() }),
            ("--placement off", Config { placement: false, ..Config::default() }),
            (
                "--cpus 0,2-3",
                Config { cpus: Some(Box::new("0,2-3".parse().unwrap())), ..Config::default() },
            ),
            ("--group audio", Config { group: Some("audio".into()), ..Config::default() }),
            ("--trace-switches", Config { trace_switches: true, ..Config::default() }),
            ("--no-feedback", Config { feedback: false, ..Config::default() }),
            (
                "--self-connect fail-all",
                Config { self_connect: SelfConnect::FailAll, ..Config::default() },
            ),
        ] {
            assert_eq!(parse(words), Ok(expected), "{words}");
        }
    }

    #[test]
    fn a_server_starts_with_its_saved_state_except_for_a_given_quantum() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let words = format!("--state {}", path.display());
        assert_eq!(
            parse(&words).unwrap().quantum,
            defaults::QUANTUM_FRAMES,
            "there is no file yet"
        );
        state::write(&path, &State { quantum: Some(128), ..State::default() }).unwrap();
        assert_eq!(parse(&words).unwrap().quantum, 128);
        let asked = parse(&format!("{words} --quantum 64")).unwrap();
        assert_eq!((asked.quantum, asked.state.unwrap().state.quantum), (64, Some(128)));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(parse(&words).unwrap_err().contains("not a state"));
        let refusal = parse(&format!("--state {}", directory.path().display())).unwrap_err();
        assert!(refusal.contains("not a regular file"), "{refusal}");
    }

    #[test]
    fn options_that_no_driver_can_satisfy_are_usage_errors() {
        for words in [
            "--input a.wav",
            "--fast",
            "--driver file",
            "--driver file --input a.wav --capture 2",
            "--device hw:0",
            "--hardware-monitoring --driver timer",
            "--periods 3 --driver timer",
            "--driver alsa --input a.wav",
            "--driver alsa --capture 0 --playback 0",
            "--driver alsa --periods 1",
            "--driver alsa --format s8",
            "--driver file --input a.wav --loop",
            "--quantum 0",
            "--quantum 8193",
            "--rate 999",
            "--realtime-priority 99",
            "--port-max 15",
            "--capture 600000",
            "--capture 1025",
            "--port-max 16 --playback 9",
            "--client-ports 2049",
            "--client-timeout 0",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
        let refusal = parse("--capture 1025").unwrap_err();
        assert!(refusal.contains("--capture 1025") && refusal.contains("1024"), "{refusal}");
    }
}
