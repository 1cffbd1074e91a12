//! Which client runs on which CPU: measured all the time, scheduled with each plan, sent with the
//! assignments.

use std::collections::HashMap;

use proto::status::{self, Place};
use rt::record::{ClientRecord, CycleRecord, UNKNOWN_CPU};
use rt::sync::Ordering;
use sys::clock::now_ns;

use super::Control;
use crate::order::{Order, order};
use crate::placement::{Costs, Graph, ObservedCosts, expected_ns, keep, schedule};
use crate::supervision::{Event, UnpinReason};

/// The CPUs to place clients on, and what hops between them cost.
#[derive(Debug, Clone)]
pub struct PlacementConfig {
    /// The CPUs; the first is the driver thread's.
    pub cpus: Vec<u32>,
    /// The costs measured when the server started.
    pub costs: Costs,
}

/// The CPU of each client.
type Assignment = HashMap<u32, u32>;

/// Where the clients are.
#[derive(Debug)]
pub(super) struct Placement {
    config: PlacementConfig,
    observed: ObservedCosts,
    /// The assignment in the next plan.
    current: Assignment,
    /// Generation of the first plan with this assignment.
    current_since: u64,
    /// Time of the next review: the regular one, or earlier because the graph has changed.
    review_at_ns: u64,
    /// Time of the next regular review.
    regular_review_ns: u64,
}

/// Interval between regular reviews: whether durations have changed so much that another schedule
/// is better.
const REVIEW_NS: u64 = 1_000_000_000;
/// Delay of a review after the last change of the graph. The search for a schedule takes longer
/// than the rest of a plan, and neither sound nor requests wait for it.
const REVIEW_AFTER_CHANGE_NS: u64 = 50_000_000;

impl Placement {
    pub(super) fn new(config: PlacementConfig) -> Self {
        Self {
            config,
            observed: ObservedCosts::default(),
            current: HashMap::new(),
            current_since: 0,
            review_at_ns: 0,
            regular_review_ns: 0,
        }
    }

    /// The CPU of a client, if it is to stay on one.
    pub(super) fn cpu(&self, client: u32) -> Option<u32> {
        self.current.get(&client).copied()
    }

    /// The CPU of the driver thread.
    pub(super) fn driver_cpu(&self) -> Option<u32> {
        self.config.cpus.first().copied()
    }

    /// Whether one client on each CPU but the driver's wakes before the cycle is due. By the costs
    /// that were measured at the start: what is observed depends on the answer.
    pub(super) fn wakes_early(&self) -> bool {
        self.config.costs.justify_early_wakes()
    }

    /// Uses `assignment` from plan `generation` on. Returns true if it differs from the one before.
    fn settle(&mut self, assignment: Assignment, generation: u64) -> bool {
        let is_new = self.current != assignment;
        if is_new {
            (self.current, self.current_since) = (assignment, generation);
        }
        is_new
    }

    /// Begins the records of a cycle.
    pub(super) fn note_cycle(&mut self, cycle: CycleRecord) {
        self.observed.begin(cycle, self.config.costs);
    }
}

impl Control {
    /// Gives every client of a plan a CPU: the one that it has, or one that suits the others.
    /// Whether all should move is reviewed once the plan is published.
    pub(super) fn place(&mut self, order: &Order) {
        let next = self.assignment(order, keep);
        let soon_ns = now_ns() + REVIEW_AFTER_CHANGE_NS;
        let generation = self.publisher.next_generation();
        if let Some((placement, next)) = self.publisher.placement.as_mut().zip(next) {
            placement.settle(next, generation);
            placement.review_at_ns = soon_ns.min(placement.regular_review_ns);
        }
    }

    /// Asks for another plan if the graph or its durations have changed so far that clients should
    /// move.
    pub(super) fn review_placement(&mut self, now_ns: u64) {
        let Some(placement) =
            self.publisher.placement.as_mut().filter(|placement| placement.review_at_ns <= now_ns)
        else {
            return;
        };
        placement.regular_review_ns = now_ns + REVIEW_NS;
        placement.review_at_ns = placement.regular_review_ns;
        placement.observed.review(placement.config.costs);
        let order = order(&self.model, &self.members());
        let next = self.assignment(&order, schedule);
        let generation = self.publisher.next_generation();
        if let Some((placement, next)) = self.publisher.placement.as_mut().zip(next)
            && placement.settle(next, generation)
        {
            self.publisher.need(now_ns);
        }
    }

    /// Notes one more record of a cycle: the hop that led to it, and whether the client ran on the
    /// CPU that is assigned to it. Not in freewheel, where no CPU sleeps and no thread is
    /// real-time.
    pub(super) fn note_placement(&mut self, record: ClientRecord, now_ns: u64) {
        let Some(placement) =
            self.publisher.placement.as_mut().filter(|_| !self.settings.freewheels)
        else {
            return;
        };
        placement.observed.note(record);
        let cycle = self.supervisor.newest;
        let has_assignment = cycle.cycle == record.cycle && cycle.plan >= placement.current_since;
        let has_noted_cpu = record.finished_ns != 0 && record.cpu != UNKNOWN_CPU;
        let assigned = placement.cpu(record.client).filter(|_| has_assignment && has_noted_cpu);
        if let Some(assigned) = assigned {
            let event = Event::RanOn { cpu: u32::from(record.cpu), assigned };
            self.supervise(record.client, event, now_ns);
        }
    }

    /// Returns the costs and durations by which CPUs were chosen.
    pub(super) fn placement(&self, order: &Order) -> Option<status::Placement> {
        let Placement { config, observed, current, .. } = self.publisher.placement.as_ref()?;
        let (costs, graph) = (observed.costs(config.costs), self.graph(order)?);
        let expected_ns = |assignment| expected_ns(&graph, costs, &config.cpus, assignment);
        Some(status::Placement {
            cpus: config.cpus.clone(),
            hop_ns: costs.same_cpu.hop_ns,
            cross_hop_ns: costs.cross_cpu.hop_ns,
            expected_ns: expected_ns(current),
            alone_ns: expected_ns(&Assignment::new()),
        })
    }

    /// Returns where a client of the graph is to run, and why.
    pub(super) fn place_of(&self, client: u32, order: &Order) -> Option<Place> {
        let placement = self.publisher.placement.as_ref()?;
        let Some(cpu) = placement.cpu(client) else {
            let (reason, left_ns) =
                self.clients.slots.get(&client)?.supervision.unpinned(now_ns())?;
            let left_ms = left_ns / 1_000_000;
            return Some(match reason {
                UnpinReason::Late => Place::Late { left_ms },
                UnpinReason::Mismatch(cpu) => Place::Refused { cpu, left_ms },
            });
        };
        let predecessors: Vec<u32> = order
            .edges
            .iter()
            .filter(|(_, follower)| *follower == client)
            .map(|(other, _)| *other)
            .collect();
        // The last predecessor to run on its CPU.
        let here =
            |other: &&u32| predecessors.contains(other) && placement.cpu(**other) == Some(cpu);
        let waker =
            order.clients.iter().rfind(here).map(|other| self.client_name(*other).to_owned());
        let is_woken_here =
            waker.is_some() || (predecessors.is_empty() && placement.driver_cpu() == Some(cpu));
        Some(if is_woken_here { Place::After { cpu, waker } } else { Place::Beside { cpu } })
    }

    pub(super) fn client_name(&self, client: u32) -> &str {
        self.model.client(client).map_or("", |client| &client.name)
    }

    /// Returns the assignment that `choose` makes, starting from the current one.
    fn assignment(
        &self,
        order: &Order,
        choose: impl FnOnce(&Graph, Costs, &[u32], &Assignment) -> Assignment,
    ) -> Option<Assignment> {
        let Placement { config, observed, current, .. } = self.publisher.placement.as_ref()?;
        Some(choose(&self.graph(order)?, observed.costs(config.costs), &config.cpus, current))
    }

    /// The clients that a CPU may be assigned to, and how long they take.
    fn graph<'a>(&self, order: &'a Order) -> Option<Graph<'a>> {
        let placement = self.publisher.placement.as_ref()?;
        let now_ns = now_ns();
        let movable = order.clients.iter().filter_map(|client| {
            let slot = self.clients.slots.get(client)?;
            if !slot.supervision.may_be_pinned(now_ns) {
                return None;
            }
            Some((*client, slot.measured.duration_ns()))
        });
        let driver_ns =
            self.shared.accounting_ns.load(Ordering::Relaxed) + placement.observed.leave_ns();
        Some(Graph { driver_ns, clients: movable.collect(), edges: &order.edges })
    }
}
