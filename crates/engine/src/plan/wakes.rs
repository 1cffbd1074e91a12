//! Who wakes those who wait for the driver alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use rt::cycle::Wakes;
use rt::park::Sleepers;
use rt::shm::Edges;

use super::{Books, Plan};

/// Has a rouser wake the clients of a CPU that has enough of them, and the driver those on other CPUs before those on its own.
pub(super) fn settle(plan: &mut Plan, books: &impl Books) {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for seat in plan.seats.iter().filter(|seat| seat.edges == Edges::NONE) {
        if let Some(cpu) = books.cpu(seat.client) {
            *counts.entry(cpu).or_default() += 1;
        }
    }
    let near = books.driver_cpu().and_then(|cpu| counts.remove(&cpu));
    let (mut roused, mut first) = (None, None);
    for (cpu, count) in counts {
        let rouser = books.rouser(cpu, count);
        let group = if rouser.is_some() { &mut roused } else { &mut first };
        let sleepers = Sleepers::on(Some(cpu));
        *group = Some(group.map_or(sleepers, |group: Sleepers| group.and(sleepers)));
        plan.rousers.extend(rouser.map(Arc::clone));
    }
    // Alone, they need not be told from others.
    plan.wakes = Wakes::new(roused, first.filter(|_| near.is_some()));
}
