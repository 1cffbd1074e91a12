//! How a server is started.

use std::path::PathBuf;

use proto::defaults;
use state::State;
use sys::thread::CpuSet;

use crate::model::Limits;
use crate::policy::Policy;

use proto::driver::DriverChoice;

/// Connections at once, for each port at once.
const CONNECTIONS_PER_PORT: u32 = 16;

/// Everything that can be configured when a server starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Its name.
    pub name: String,
    /// What starts cycles.
    pub driver: DriverChoice,
    /// Length of a cycle, frames.
    pub quantum: u32,
    /// The driver waits for the graph's end in each cycle.
    pub sync: bool,
    /// `SCHED_FIFO` priority of the driver thread; `None`: nothing is real-time.
    pub realtime_priority: Option<u32>,
    /// How long a client may be late before it is suspended; `None`: 3 quanta, at least 20 ms.
    pub client_timeout_ms: Option<u32>,
    /// How long clients wait for another server after this one has crashed.
    pub grace_ms: u32,
    /// After how long without anything that plays the card is closed, seconds; 0: never.
    pub suspend_s: u32,
    /// The most ports at any time.
    pub port_max: u32,
    /// The most ports of one client; `None`: three quarters of `port_max`, so that one client
    /// cannot use up all ports.
    pub client_ports: Option<u32>,
    /// Stop when the last client has left.
    pub temporary: bool,
    /// Loops in the graph become feedback; otherwise a connection that closes one is refused.
    pub feedback: bool,
    /// Log more.
    pub verbose: bool,
    /// Trace which threads run on the CPUs, so that an xrun report can name them.
    pub trace_switches: bool,
    /// What a client may do with its own ports.
    pub self_connect: SelfConnect,
    /// The server assigns a CPU to each process thread; otherwise the kernel decides.
    pub placement: bool,
    /// Members of this group may open clients, too.
    pub group: Option<String>,
    /// What programs are trusted with.
    pub policy: Policy,
    /// The operator trusts all programs not to harm each other on purpose, so that a hop needs no
    /// timer.
    pub trusts_programs: bool,
    /// The CPUs that driver and clients may use; `None`: those that the server may.
    pub cpus: Option<Box<CpuSet>>,
    /// Where the server's state is saved; `None`: nowhere.
    pub state: Option<Box<StateFile>>,
}

/// A state that is saved in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFile {
    /// The file.
    pub path: PathBuf,
    /// The state that it holds at the start. The quantum comes from [`Config::quantum`] instead.
    pub state: State,
}

impl Default for Config {
    /// The server `default` with the timer as its driver.
    fn default() -> Self {
        Self {
            name: "default".into(),
            driver: DriverChoice::Timer {
                capture: defaults::CHANNELS,
                playback: defaults::CHANNELS,
                sample_rate_hz: None,
                looped: false,
                monitors: false,
            },
            quantum: defaults::QUANTUM_FRAMES,
            sync: false,
            realtime_priority: Some(defaults::REALTIME_PRIORITY),
            client_timeout_ms: None,
            grace_ms: defaults::GRACE_MS,
            suspend_s: defaults::SUSPEND_S,
            port_max: defaults::PORT_MAX,
            client_ports: None,
            temporary: false,
            feedback: true,
            verbose: false,
            trace_switches: false,
            self_connect: SelfConnect::Allow,
            placement: true,
            group: None,
            policy: Policy::default(),
            trusts_programs: false,
            cpus: None,
            state: None,
        }
    }
}

impl Config {
    /// After how long without anything that plays the card is closed, ns; `None`: never.
    pub(crate) fn suspend_ns(&self) -> Option<u64> {
        (self.suspend_s > 0).then(|| u64::from(self.suspend_s) * 1_000_000_000)
    }

    /// Ports that one client can have.
    pub fn ports_of_client(&self) -> u32 {
        self.client_ports.unwrap_or(self.port_max - self.port_max / 4)
    }

    /// Ports that one program can have, in all of its clients: as many as one client, or three
    /// quarters of all.
    pub fn ports_of_program(&self) -> u32 {
        self.ports_of_client().max(self.port_max - self.port_max / 4)
    }

    /// The most clients, ports and connections of all programs.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            clients: self.port_max,
            ports: self.port_max,
            connections: self.port_max.saturating_mul(CONNECTIONS_PER_PORT),
        }
    }

    /// Slabs that one client can have, of 16 output ports each: twice what its ports need, because
    /// the memory of ports that are gone is not used again at once.
    pub fn slabs_of_client(&self) -> u32 {
        1 + 2 * self.ports_of_client().div_ceil(rt::shm::SLOTS_PER_SLAB)
    }
}

/// What happens when a client connects its own ports (jackd's `-a`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SelfConnect {
    /// The connection is made.
    #[default]
    Allow,
    /// Connections to other clients' ports are refused.
    FailExternal,
    /// Connections to other clients' ports are not made, but reported to the client as made.
    IgnoreExternal,
    /// All are refused.
    FailAll,
    /// None is made, but all are reported to the client as made.
    IgnoreAll,
}
