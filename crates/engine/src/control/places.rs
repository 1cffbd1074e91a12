//! Which client runs on which CPU: measured all the time, scheduled with each plan, told with the orders.

use std::collections::HashMap;

use sys::clock::now_ns;

use super::Control;
use crate::order::{Order, order};
use crate::placement::{Costs, Graph, schedule};

/// The CPUs to place clients on, and what hops between them cost.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The first is the driver thread's.
    pub cpus: Vec<u32>,
    /// As measured when the server started.
    pub costs: Costs,
}

/// Where the clients are.
#[derive(Debug)]
pub(super) struct Places {
    ground: Ground,
    current: HashMap<u32, u32>,
    look_at_ns: u64,
}

/// How often it is looked whether durations have moved so far that another schedule is better.
const LOOK_NS: u64 = 1_000_000_000;
/// A client that was late runs wherever the kernel likes for so long: its CPU may have other work.
pub(super) const RELEASE_NS: u64 = 5_000_000_000;

impl Places {
    pub(super) fn new(ground: Ground) -> Self {
        Self { ground, current: HashMap::new(), look_at_ns: 0 }
    }

    /// The CPU of a client, if it is to stay on one.
    pub(super) fn cpu(&self, client: u32) -> Option<u32> {
        self.current.get(&client).copied()
    }
}

impl Control {
    /// Gives every client of the plan its place.
    pub(super) fn place(&mut self, order: &Order) {
        if let Some(next) = self.schedule(order)
            && let Some(places) = &mut self.places
        {
            places.current = next;
        }
    }

    /// Asks for another plan if durations have moved so far that clients should.
    pub(super) fn look_at_places(&mut self) {
        let now_ns = now_ns();
        let Some(places) = self.places.as_mut().filter(|places| places.look_at_ns <= now_ns) else { return };
        places.look_at_ns = now_ns + LOOK_NS;
        let order = order(&self.parts.model, &self.members());
        let next = self.schedule(&order);
        if next.as_ref() != self.places.as_ref().map(|places| &places.current) {
            self.plans.need(now_ns);
        }
    }

    fn schedule(&self, order: &Order) -> Option<HashMap<u32, u32>> {
        let places = self.places.as_ref()?;
        let now_ns = now_ns();
        let placed = order.clients.iter().filter_map(|client| {
            let slot = self.clients.get(client).filter(|slot| slot.released_until_ns <= now_ns)?;
            Some((*client, slot.measured.duration_ns()))
        });
        let graph = Graph { clients: placed.collect(), edges: &order.edges };
        Some(schedule(&graph, places.ground.costs, &places.ground.cpus, &places.current))
    }
}
