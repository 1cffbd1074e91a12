//! What the machine says about itself. Everything that cannot be read counts as absent.

use std::fs;
use std::path::Path;

use alsa::{Direction, Holder};
use client::Observer;
use sys::runtime_directory::ControlSockets;
use sys::socket::is_dead;

use crate::loader::{self, Width};
use crate::{
    BusName, FlatpakFacts, HeadsetFacts, LibraryFacts, NamedServer, PipeWireFacts, PulseSocket,
    WirePlumber, bluetooth, bus, flatpak, listener, pipewire, pulse,
};

/// The state of the machine, for this user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Highest real-time priority that this process may take; 0: none.
    pub rtprio_limit: u32,
    /// Bytes that this process may lock; `None`: any number.
    pub memlock_limit: Option<u64>,
    /// RealtimeKit is installed.
    pub has_realtime_kit: bool,
    /// µs of each period that real-time threads may run in all, and the period; a negative part
    /// lets them run without a limit.
    pub realtime_throttle_us: Option<(i64, i64)>,
    /// Governors of the CPUs' frequency, each once; empty where the machine has no choice.
    pub governors: Vec<String>,
    /// Sound cards.
    pub cards: Vec<CardFacts>,
    /// Other sound servers of this user that run.
    pub others: Vec<OtherServer>,
    /// Who listens where programs of PulseAudio look for their server.
    pub pulse: PulseSocket,
    /// The server that programs of PulseAudio look for instead, if one is named.
    pub pulse_server: Option<NamedServer>,
    /// PipeWire, if it runs.
    pub pipewire: Option<PipeWireFacts>,
    /// How its session manager is configured, if that is WirePlumber.
    pub wireplumber: Option<WirePlumber>,
    /// Names of sound servers on the session bus that somebody has.
    pub bus: Vec<BusName>,
    /// The applications that run in Flatpaks, which see no more than some sockets; `None`: Flatpak
    /// is not installed.
    pub flatpaks: Option<Vec<FlatpakFacts>>,
    /// Headsets and loudspeakers of Bluetooth.
    pub headsets: Vec<HeadsetFacts>,
    /// What a program gets that is linked with `libjack.so.0`; `None`: there is none.
    pub libjack: Option<LibraryFacts>,
    /// The same, of a program of 32 bits on a system of 64.
    pub narrow_libjack: Option<LibraryFacts>,
    /// The server that was asked about, if it runs.
    pub server: Option<ServerFacts>,
    /// systemd listens in its place, and starts it for the first program that connects.
    pub starts_on_demand: bool,
}

/// A sound card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardFacts {
    /// Its name for users.
    pub name: String,
    /// ALSA's name of its first device.
    pub device: String,
    /// This user may not open it.
    pub is_forbidden: bool,
    /// The program that has one of its devices open, if it is known; another one's rather than
    /// consort's.
    pub holder: Option<Holder>,
}

/// A process of another sound server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherServer {
    /// Its program.
    pub program: String,
    /// Its process id.
    pub process: u32,
}

/// A server of consort.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFacts {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub process: u32,
    /// What starts its cycles, for users.
    pub driver: String,
    /// Its real-time priority; `None`: it has none.
    pub realtime_priority: Option<u32>,
    /// Xruns since it started.
    pub xruns: u32,
    /// Cycles since it started.
    pub cycles: u64,
}

/// Sound servers that may hold what consort needs. PipeWire is asked what it has.
const SERVERS: [&str; 5] = ["jackd", "jackdbus", "pulseaudio", "pipewire-pulse", "cras"];

impl Facts {
    /// Reads the machine, and asks the server of that name.
    #[must_use]
    pub fn gather(server: &str) -> Self {
        let wireplumber = WirePlumber::installed();
        let starts_on_demand = starts_on_demand(server);
        Self {
            rtprio_limit: priority_limit(),
            memlock_limit: sys::process::memlock_limit(),
            has_realtime_kit: realtime_kit(),
            realtime_throttle_us: throttle(),
            governors: governors(),
            cards: cards(),
            others: others(),
            pulse: pulse::listener(),
            pipewire: pipewire::running(wireplumber),
            wireplumber,
            bus: bus::names(),
            flatpaks: Path::new("/usr/bin/flatpak").exists().then(flatpak::running),
            headsets: bluetooth::headsets(),
            pulse_server: pulse::named_server(),
            libjack: loader::find("libjack.so.0", Width::Own),
            narrow_libjack: loader::find("libjack.so.0", Width::Narrow),
            // Asking it would start it.
            server: if starts_on_demand { None } else { running(server) },
            starts_on_demand,
        }
    }
}

/// Who may take any priority has no limit.
fn priority_limit() -> u32 {
    const HIGHEST: u32 = 99;
    if sys::process::may_schedule() { HIGHEST } else { sys::process::rtprio_limit() }
}

fn realtime_kit() -> bool {
    Path::new("/usr/share/dbus-1/system-services/org.freedesktop.RealtimeKit1.service").exists()
}

fn throttle() -> Option<(i64, i64)> {
    let read = |name: &str| -> Option<i64> {
        fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
    };
    Some((read("sched_rt_runtime_us")?, read("sched_rt_period_us")?))
}

fn governors() -> Vec<String> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let governor =
        |cpu: fs::DirEntry| fs::read_to_string(cpu.path().join("cpufreq/scaling_governor")).ok();
    let mut found: Vec<String> =
        cpus.filter_map(governor).map(|name| name.trim().to_owned()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn cards() -> Vec<CardFacts> {
    let of_card = |card: alsa::Card| {
        let device = card.devices.iter().find(|device| device.plays)?.index;
        let name = card.device_name(device, None);
        Some(CardFacts {
            is_forbidden: alsa::is_forbidden(&name),
            holder: holder(&card),
            name: card.name,
            device: name,
        })
    };
    let mut found: Vec<CardFacts> = alsa::cards().into_iter().filter_map(of_card).collect();
    // A card that this user may not even ask for its name.
    if found.is_empty()
        && let Some(device) = alsa::first_forbidden()
    {
        let name = "a sound card".to_owned();
        found.push(CardFacts { name, device, is_forbidden: true, holder: None });
    }
    found
}

fn holder(card: &alsa::Card) -> Option<Holder> {
    let directions = |device: &alsa::CardDevice| {
        let index = device.index;
        [Direction::Playback, Direction::Capture].map(|direction| (index, direction))
    };
    let mut holders: Vec<Holder> = card
        .devices
        .iter()
        .flat_map(directions)
        .filter_map(|(device, direction)| alsa::holder(card.index, device, direction))
        .collect();
    holders.sort_by_key(|holder| holder.program.as_deref() == Some("consort"));
    holders.into_iter().next()
}

fn others() -> Vec<OtherServer> {
    let own_user = sys::process::real_user_id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<OtherServer> = processes
        .filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            let program = fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned();
            let is_one = SERVERS.contains(&program.as_str())
                && user(&entry.path()) == Some(own_user)
                && !is_consort(&entry.path());
            is_one.then_some(OtherServer { program, process })
        })
        .collect();
    found.sort_unstable_by_key(|server| server.process);
    found
}

/// The user of a process.
fn user(process: &Path) -> Option<u32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether a process called `jackd` is consort, which answers to that name.
pub(crate) fn is_consort(process: &Path) -> bool {
    fs::read_link(process.join("exe"))
        .is_ok_and(|program| program.file_name().is_some_and(|name| name == "consort"))
}

/// Whether systemd is the only one to hold the server's socket, under its own name: a server that
/// was started by hand and killed leaves it without one.
fn starts_on_demand(name: &str) -> bool {
    let socket = ControlSockets::of_environment().and_then(|sockets| sockets.of(name)).ok();
    let socket = socket.filter(|socket| !is_dead(socket));
    let holders = socket.and_then(|socket| listener::holders_at(&socket)).unwrap_or_default();
    !holders.is_empty() && holders.iter().all(|holder| holder.program == "systemd")
}

fn running(name: &str) -> Option<ServerFacts> {
    let status = Observer::open(Some(name)).ok()?.status().ok()?;
    Some(ServerFacts {
        name: status.name,
        process: status.process,
        driver: status.driver,
        realtime_priority: status.realtime_priority,
        xruns: status.xruns,
        cycles: status.cycles,
    })
}
