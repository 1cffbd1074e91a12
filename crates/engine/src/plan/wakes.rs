//! The order in which clients are woken that wait for the driver alone.

use std::collections::HashSet;

use rt::cycle::Wakes;
use rt::park::WakeMask;
use rt::shm::Edges;

use super::{GraphView, Plan};

/// Lets the driver wake the clients on other CPUs before those on its own.
pub(super) fn settle(plan: &mut Plan, graph: &GraphView<'_>) {
    let roots = plan.seats.iter().filter(|seat| seat.edges == Edges::NONE);
    let mut cpus: HashSet<u32> = roots.filter_map(|seat| graph.cpu(seat.client)).collect();
    let has_near = graph.driver_cpu.is_some_and(|cpu| cpus.remove(&cpu));
    let far = cpus.into_iter().map(|cpu| WakeMask::for_cpu(Some(cpu))).reduce(WakeMask::union);
    // Without clients on the driver's own CPU, no order is needed.
    plan.wakes = Wakes::new(far.filter(|_| has_near));
}
