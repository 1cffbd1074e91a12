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
    /// The clients, by id; in a reply, the first of them, as in [`Reply::Clients`](crate::request::Reply::Clients).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{CLIENT_NAME_BYTES, CLIENTS_AT_ONCE};
    use crate::request::Reply;

    #[test]
    fn as_many_clients_as_are_told_at_once_fit_a_packet_however_long_all_is() {
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
