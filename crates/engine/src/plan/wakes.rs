//! The order in which clients are woken that wait for the driver alone.

use rt::shm::Edges;

use super::{GraphView, Plan};

/// Lets the driver wake the clients on other CPUs before those on its own: another CPU takes longer
/// to wake up, and does so while the others are woken.
pub(super) fn settle(plan: &mut Plan, graph: &GraphView<'_>) {
    let is_root = |seat: &usize| plan.seats[*seat].edges == Edges::NONE;
    plan.roots = (0..plan.seats.len()).filter(is_root).collect();
    let is_near = |seat: &usize| {
        let cpu = graph.cpu(plan.seats[*seat].client);
        cpu.is_some() && cpu == graph.driver_cpu
    };
    plan.roots.sort_by_key(is_near);
}
