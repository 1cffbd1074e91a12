//! How a server is started.

use std::path::PathBuf;

use state::State;
use sys::thread::CpuSet;

use crate::policy::Policy;

use crate::driver::DriverChoice;

/// As long as people take to start a server again, and no longer than programs should look dead.
pub const DEFAULT_GRACE_MS: u32 = 5_000;

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
    /// ... of one client; `None`: three quarters of them, so that one client cannot keep all others out.
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

impl Config {
    /// Ports that one client can have.
    pub fn ports_of_client(&self) -> u32 {
        self.client_ports.unwrap_or(self.port_max - self.port_max / 4)
    }

    /// Slabs that one client can have, of 16 output ports each: twice what its ports need, because the memory of ports that
    /// are gone is not used again at once.
    pub fn slabs_of_client(&self) -> u32 {
        1 + 2 * self.ports_of_client().div_ceil(rt::shm::SLOTS_PER_SLAB)
    }
}

/// The program that runs plug-ins, each in a process of its own. Its arguments are the engine's to give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosting {
    /// The executable, which takes the arguments of `consort host`.
    pub program: PathBuf,
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
