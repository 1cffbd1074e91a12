//! The order in which clients are woken: those on other CPUs before those on the waker's own.
//! Another CPU takes longer to wake up, and does so while the others are woken.

use std::collections::HashSet;

use rt::shm::Edges;

use super::{GraphView, Plan};

/// Orders the clients that wait for the driver alone. On each CPU the one that wakes early is the
/// first.
pub(super) fn settle(plan: &mut Plan, graph: &GraphView<'_>, early: &HashSet<u32>) {
    let is_root = |seat: &usize| plan.seats[*seat].edges == Edges::NONE;
    plan.roots = (0..plan.seats.len()).filter(is_root).collect();
    let rank = |seat: &usize| {
        let client = plan.seats[*seat].client;
        (is_near(graph, client, graph.driver_cpu), !early.contains(&client))
    };
    plan.roots.sort_by_key(rank);
}

/// Orders the (follower, edge) pairs of a client.
pub(super) fn order_followers(graph: &GraphView<'_>, client: u32, followers: &mut [(u32, u32)]) {
    let cpu = graph.cpu(client);
    followers.sort_by_key(|(follower, _)| is_near(graph, *follower, cpu));
}

/// Whether a client runs on the CPU of its waker, as far as the server decides.
fn is_near(graph: &GraphView<'_>, client: u32, waker_cpu: Option<u32>) -> bool {
    let cpu = graph.cpu(client);
    cpu.is_some() && cpu == waker_cpu
}

/// The clients that wake before the cycle is due: one on each CPU but the driver's, if possible one
/// that waits for the driver alone (`is_root`). Its CPU is awake when the others there are woken.
pub(super) fn early(graph: &GraphView<'_>, is_root: impl Fn(u32) -> bool) -> HashSet<u32> {
    let mut awake: HashSet<u32> = graph.driver_cpu.into_iter().collect();
    if !graph.wakes_early || awake.is_empty() {
        return HashSet::new();
    }
    let clients = graph.order.clients.iter().copied();
    let (roots, others): (Vec<u32>, Vec<u32>) = clients.partition(|client| is_root(*client));
    let in_order = roots.into_iter().chain(others);
    in_order.filter(|client| graph.cpu(*client).is_some_and(|cpu| awake.insert(cpu))).collect()
}
