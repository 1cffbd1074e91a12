//! Which client runs on which CPU.
//!
//! A hop to a client on the same CPU costs a context switch; a hop to another CPU costs waking that
//! CPU, which is several times as much. A chain is therefore fastest on one CPU, and branches are
//! worth spreading only where they have more work than the hops cost. What hops cost here is
//! measured once ([`calibrate()`]), and then in the cycles that run ([`Observed`]), as what the
//! clients and the driver cost is; from both, [`schedule()`] says who runs where.
//!
//! Everything here belongs to the control thread: it allocates.

mod calibrate;
mod observed;
mod schedule;
mod simulation;
#[cfg(test)]
mod tests;

pub use calibrate::calibrate;
pub use observed::Observed;
pub use schedule::{expected_ns, keep, schedule};

/// What it costs to hand over from one client to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// To a client on the same CPU.
    pub same_cpu: Handover,
    /// To a client on another CPU, which sleeps; not less than on the same.
    pub cross_cpu: Handover,
    /// How long the waker is at each further client on its own CPU, or on one that it has just
    /// roused; not more than at the first there.
    pub further_wake_ns: u64,
}

/// What one handover costs, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// From the begin of the wake to the woken one's first instruction.
    pub hop_ns: u64,
    /// How long the waker is at it, before it can wake another one or sleep; not more than the hop.
    pub wake_ns: u64,
}

impl Costs {
    /// From a CPU to a CPU.
    fn between(self, from: usize, to: usize) -> Handover {
        if from == to { self.same_cpu } else { self.cross_cpu }
    }

    /// What it costs a CPU to go over to another client that has been woken.
    fn switch_ns(self) -> u64 {
        self.same_cpu.hop_ns.saturating_sub(self.same_cpu.wake_ns)
    }
}

/// The clients of a plan, and who waits for whom.
#[derive(Debug, Clone)]
pub struct Graph<'a> {
    /// How long the driver keeps its CPU after it has woken the first clients, in nanoseconds:
    /// nobody else runs there meanwhile. What the wakes take comes before.
    pub driver_ns: u64,
    /// Id and duration (CPU time per cycle, in nanoseconds); each client after those that it waits
    /// for.
    pub clients: Vec<(u32, u64)>,
    /// (Predecessor, follower) pairs of ids, each once, as in [`Order`](crate::order::Order). An
    /// edge of a client that is not in `clients`, or against their order, makes nobody wait.
    pub edges: &'a [(u32, u32)],
}
