//! Cycle records: what the driver thread tells the control thread of every cycle.

/// One record. Plain data, copied through a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The driver's part of a cycle.
    Cycle {
        /// Number.
        cycle: u32,
        /// Frames.
        quantum: u32,
        /// When it was due, ns.
        due_ns: u64,
        /// When the driver woke, ns.
        woken_ns: u64,
        /// When the driver had done its part, ns.
        end_ns: u64,
        /// The device lost frames before it: an xrun that was noticed so late.
        xrun_us: Option<u32>,
        /// The device was gone, and a timer began the cycle.
        is_away: bool,
    },
    /// A client's part of a cycle.
    Client {
        /// Number of the cycle.
        cycle: u32,
        /// Id of the client.
        client: u32,
        /// When the driver woke for the cycle, ns.
        woken_ns: u64,
        /// When the last of its predecessors signaled it, ns.
        signaled_ns: u64,
        /// When it woke, ns, as it says itself.
        awake_ns: u64,
        /// When it finished, ns, as it says itself.
        finished_ns: u64,
        /// CPU that it ran on.
        cpu: u32,
        /// 0: it finished in time; otherwise for how many cycles in a row it has not.
        late_cycles: u32,
    },
}
