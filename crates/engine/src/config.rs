//! How a server is started.

use std::path::PathBuf;

use proto::defaults;
use state::State;
use sys::thread::CpuSet;

use crate::policy::Policy;

use proto::driver::DriverChoice;

/// Everything that can be said when a server starts.
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
    /// How long a client may be late before it is left out; `None`: three quanta, and 20 ms at
    /// least.
    pub client_timeout_ms: Option<u32>,
    /// How long clients wait for another server when this one is gone without a word.
    pub grace_ms: u32,
    /// Ports at once.
    pub port_max: u32,
    /// ... of one client; `None`: three quarters of them, so that one client cannot keep all others
    /// out.
    pub client_ports: Option<u32>,
    /// Stop when the last client has left.
    pub temporary: bool,
    /// Loops in the graph become feedback; otherwise a connection that closes one is refused.
    pub feedback: bool,
    /// Say more.
    pub verbose: bool,
    /// Trace which threads run on the CPUs, so that xruns say who had them.
    pub trace_switches: bool,
    /// What a client may do with its own ports.
    pub self_connect: SelfConnect,
    /// Process threads are told on which CPU to run; otherwise the kernel decides.
    pub placement: bool,
    /// Members of this group may be clients, too.
    pub group: Option<String>,
    /// What programs are trusted with.
    pub policy: Policy,
    /// The CPUs that driver and clients may use; `None`: those that the server may.
    pub cpus: Option<Box<CpuSet>>,
    /// Where the server's state is kept; `None`: nowhere.
    pub state: Option<Box<KeptState>>,
}

/// A state that is kept in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptState {
    /// The file.
    pub path: PathBuf,
    /// What it says at the start. The quantum is [`Config::quantum`]'s to say.
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
            cpus: None,
            state: None,
        }
    }
}

impl Config {
    /// Ports that one client can have.
    pub fn ports_of_client(&self) -> u32 {
        self.client_ports.unwrap_or(self.port_max - self.port_max / 4)
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
    /// It is done.
    #[default]
    Allow,
    /// Connections to other clients' ports are refused.
    FailExternal,
    /// Connections to other clients' ports are not made, and the client is told that they were.
    IgnoreExternal,
    /// All are refused.
    FailAll,
    /// None is made, and the client is told that they were.
    IgnoreAll,
}
