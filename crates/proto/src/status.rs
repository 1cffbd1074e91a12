//! How the server is, for the command line.

use serde::{Deserialize, Serialize};

/// The server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its release.
    pub version: String,
    /// Process id.
    pub process: u32,
    /// What starts cycles.
    pub driver: String,
    /// Hz.
    pub sample_rate_hz: u32,
    /// Frames.
    pub quantum: u32,
    /// The driver waits for the graph's end in each cycle.
    pub sync: bool,
    /// Cycles follow each other as fast as the graph can.
    pub freewheel: bool,
    /// Priority of the driver thread under `SCHED_FIFO`; `None`: not real-time.
    pub realtime_priority: Option<u32>,
    /// Cycles since the start.
    pub cycles: u64,
    /// Xruns since the start.
    pub xruns: u32,
    /// DSP load, 0 to 1.
    pub load: f64,
    /// Where clients are placed; `None`: the kernel decides.
    pub placement: Option<Placement>,
    /// The clients, in the order of the plan; those in no plan last.
    pub clients: Vec<ClientStatus>,
    /// Ports in use, and how many there can be.
    pub ports: (u32, u32),
    /// Connections.
    pub connections: u32,
}

/// Where the server has clients run, and what it reckons with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The CPUs; the driver's first.
    pub cpus: Vec<u32>,
    /// What a hop to a client on the same CPU takes, ns.
    pub hop_ns: u64,
    /// What a hop to another CPU takes, which sleeps, ns.
    pub cross_hop_ns: u64,
    /// From the driver's release of the first clients to the end of the last one, as they are placed, ns. Without those that
    /// have no place.
    pub expected_ns: u64,
    /// The same with everybody on the driver's CPU, ns.
    pub alone_ns: u64,
}

/// Where a client is told to run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// On the CPU of whoever wakes it, where the hop is cheapest: the driver (`None`), or this client.
    After {
        /// The CPU.
        cpu: u32,
        /// Name of the client.
        waker: Option<String>,
    },
    /// On another CPU than whoever wakes it, beside what runs there.
    Beside {
        /// The CPU.
        cpu: u32,
    },
    /// Wherever the kernel likes: it was late too often.
    Late {
        /// For so long, ms.
        left_ms: u64,
    },
    /// Wherever the kernel likes: it did not go to this CPU, which its own affinity or its cpuset may not have.
    Refused {
        /// The CPU.
        cpu: u32,
        /// For so long, ms.
        left_ms: u64,
    },
}

/// A client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Process id.
    pub process: u32,
    /// It takes part in cycles.
    pub active: bool,
    /// It is left out of cycles because it did not answer.
    pub bypassed: bool,
    /// Times that it was left out.
    pub bypasses: u64,
    /// Cycles in which it was late.
    pub late_cycles: u64,
    /// CPU on which it ran last.
    pub cpu: Option<u32>,
    /// Where it is told to run; `None`: nowhere, or it does not run.
    pub place: Option<Place>,
    /// Its dates since it became active or, if it is long ago, lately.
    pub timing: Option<Timing>,
}

/// Durations in ns over the last cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Cycles counted.
    pub cycles: u32,
    /// From signaled to awake: half of the cycles took at most this.
    pub scheduling_median_ns: u64,
    /// From signaled to awake, longest.
    pub scheduling_max_ns: u64,
    /// From awake to finished: half of the cycles took at most this.
    pub duration_median_ns: u64,
    /// From awake to finished, longest.
    pub duration_max_ns: u64,
}
