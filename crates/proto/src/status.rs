//! The state of the server, as the command line shows it.

use serde::{Deserialize, Serialize};

/// State of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the server.
    pub name: String,
    /// Release of the server.
    pub version: String,
    /// Process id.
    pub process: u32,
    /// The driver, as text.
    pub driver: String,
    /// Sample rate, Hz.
    pub sample_rate_hz: u32,
    /// Quantum, frames.
    pub quantum: u32,
    /// Whether the driver waits for the graph's end in each cycle.
    pub sync: bool,
    /// Whether cycles follow each other as fast as the graph can run.
    pub freewheel: bool,
    /// `SCHED_FIFO` priority of the driver thread; `None` if it is not real-time.
    pub realtime_priority: Option<u32>,
    /// Cycles since the start.
    pub cycles: u64,
    /// Xruns since the start.
    pub xruns: u32,
    /// DSP load, 0 to 1.
    pub load: f64,
    /// Placement of the clients on CPUs; `None` if the kernel decides.
    pub placement: Option<Placement>,
    /// The clients by id. A reply contains only the first ones, as many as
    /// [`Reply::Clients`](crate::request::Reply::Clients).
    pub clients: Vec<ClientStatus>,
    /// Ports in use, and the maximum.
    pub ports: (u32, u32),
    /// Number of connections.
    pub connections: u32,
}

/// The placement of clients on CPUs, and the costs on which it is based.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The CPUs, the driver's first.
    pub cpus: Vec<u32>,
    /// Cost of a hop to a client on the same CPU, ns.
    pub hop_ns: u64,
    /// Cost of a hop to another CPU that sleeps, ns.
    pub cross_hop_ns: u64,
    /// Expected time from the driver's release of the first clients to the end of the last one, ns.
    /// Excludes clients without a placement.
    pub expected_ns: u64,
    /// The same with all clients on the driver's CPU, ns.
    pub alone_ns: u64,
}

/// The CPU assigned to a client, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// The CPU of its waker, where the hop is cheapest: the driver's (`None`), or this client's.
    After {
        /// The CPU.
        cpu: u32,
        /// Name of the client that wakes it.
        waker: Option<String>,
    },
    /// Another CPU than its waker's, next to the clients that run there.
    Beside {
        /// The CPU.
        cpu: u32,
    },
    /// Any CPU, because it was late too often.
    Late {
        /// How much longer, ms.
        left_ms: u64,
    },
    /// Any CPU, because it did not move to the assigned one, which its affinity or its cpuset may
    /// exclude.
    Refused {
        /// The assigned CPU.
        cpu: u32,
        /// How much longer, ms.
        left_ms: u64,
    },
}

/// State of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Process id.
    pub process: u32,
    /// Whether it takes part in cycles.
    pub active: bool,
    /// Whether it is left out of cycles because it did not respond.
    pub bypassed: bool,
    /// How often it was left out.
    pub bypasses: u64,
    /// Cycles in which it was late.
    pub late_cycles: u64,
    /// CPU on which it ran last.
    pub cpu: Option<u32>,
    /// The assigned CPU; `None` if there is none, or the client does not run.
    pub place: Option<Place>,
    /// Its durations since it became active, or over the last cycles.
    pub timing: Option<Timing>,
}

/// Durations over the last cycles, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Number of cycles.
    pub cycles: u32,
    /// Median time from signaled to awake.
    pub scheduling_median_ns: u64,
    /// Longest time from signaled to awake.
    pub scheduling_max_ns: u64,
    /// Median time from awake to finished.
    pub duration_median_ns: u64,
    /// Longest time from awake to finished.
    pub duration_max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{CLIENT_NAME_BYTES, CLIENTS_AT_ONCE};
    use crate::request::Reply;

    #[test]
    fn the_largest_status_reply_fits_a_packet() {
        let name = "n".repeat(CLIENT_NAME_BYTES);
        let client = ClientStatus {
            id: u32::MAX,
            name: name.clone(),
            process: u32::MAX,
            active: true,
            bypassed: true,
            bypasses: u64::MAX,
            late_cycles: u64::MAX,
            cpu: Some(u32::MAX),
            place: Some(Place::After { cpu: u32::MAX, waker: Some(name.clone()) }),
            timing: Some(Timing {
                cycles: u32::MAX,
                scheduling_median_ns: u64::MAX,
                scheduling_max_ns: u64::MAX,
                duration_median_ns: u64::MAX,
                duration_max_ns: u64::MAX,
            }),
        };
        let placement = Placement {
            cpus: vec![u32::MAX; 1024],
            hop_ns: u64::MAX,
            cross_hop_ns: u64::MAX,
            expected_ns: u64::MAX,
            alone_ns: u64::MAX,
        };
        let status = Status {
            name,
            version: "1.0.0".into(),
            process: u32::MAX,
            driver: "d".repeat(4096),
            sample_rate_hz: u32::MAX,
            quantum: u32::MAX,
            sync: true,
            freewheel: true,
            realtime_priority: Some(u32::MAX),
            cycles: u64::MAX,
            xruns: u32::MAX,
            load: 1.0,
            placement: Some(placement),
            clients: vec![client; CLIENTS_AT_ONCE],
            ports: (u32::MAX, u32::MAX),
            connections: u32::MAX,
        };
        let bytes = crate::encode(&Reply::Status(Box::new(status))).len();
        // A packet is a numbered reply.
        assert!(bytes + 16 < crate::MAX_PACKET_BYTES, "{bytes}");
    }
}
