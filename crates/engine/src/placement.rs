//! Which client runs on which CPU.
//!
//! A hop to a client on the same CPU costs a context switch; a hop to another CPU costs waking that
//! CPU, which is several times as much. A chain is therefore fastest on one CPU, and branches are
//! worth spreading only where they have more work than the hops cost. The cost of hops is measured
//! once ([`calibrate()`]) and then in running cycles ([`ObservedCosts`]), like the durations of the
//! clients and the driver. From these, [`schedule()`] assigns a CPU to each client.
//!
//! Everything here belongs to the control thread: it allocates.

mod calibrate;
mod observed;
mod schedule;
mod simulation;
#[cfg(test)]
mod tests;

pub use calibrate::calibrate;
pub use observed::ObservedCosts;
pub use schedule::{expected_ns, keep, schedule};

/// The costs of handing over from one client to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// To a client on the same CPU.
    pub same_cpu: HopCost,
    /// To a client on another CPU, which sleeps; not less than `same_cpu`.
    pub cross_cpu: HopCost,
    /// How long the waker takes for each further client on its own CPU, or on one that it has just
    /// woken; not more than for the first there.
    pub further_wake_ns: u64,
}

/// What one hop costs, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopCost {
    /// From the start of the wake-up to the first instruction of the woken client.
    pub hop_ns: u64,
    /// How long the waker is busy before it can wake another client or sleep; not more than the
    /// hop.
    pub wake_ns: u64,
}

/// A CPU that takes this much longer to wake than a switch takes is awake before the cycle is due:
/// about as long as the client that keeps it awake waits without sleeping where all goes well.
const SLOW_TO_WAKE_NS: u64 = 12_000;

impl Costs {
    /// Whether a sleeping CPU takes long to wake: then one client there wakes before the cycle is
    /// due.
    #[must_use]
    pub fn justify_early_wakes(self) -> bool {
        self.cross_cpu.hop_ns.saturating_sub(self.same_cpu.hop_ns) >= SLOW_TO_WAKE_NS
    }

    /// The cost of a hop from one CPU to another, or to the same.
    fn between(self, from: usize, to: usize) -> HopCost {
        if from == to { self.same_cpu } else { self.cross_cpu }
    }

    /// What it costs a CPU to switch to another client that has been woken.
    fn switch_ns(self) -> u64 {
        self.same_cpu.hop_ns.saturating_sub(self.same_cpu.wake_ns)
    }
}

/// The clients of a plan, and which of them wait for which.
#[derive(Debug, Clone)]
pub struct Graph<'a> {
    /// How long the driver keeps its CPU after it has woken the first clients, in nanoseconds: no
    /// client runs there meanwhile. The time of the wake-ups is not included.
    pub driver_ns: u64,
    /// Id and duration (CPU time per cycle, in nanoseconds); each client after those that it waits
    /// for.
    pub clients: Vec<(u32, u64)>,
    /// (Predecessor, follower) pairs of ids, each once, as in [`Order`](crate::order::Order). An
    /// edge of a client that is not in `clients`, or against their order, is ignored.
    pub edges: &'a [(u32, u32)],
}
