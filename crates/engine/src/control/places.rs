//! Which client runs on which CPU: measured all the time, scheduled with each plan, told with the orders.

use std::collections::{HashMap, HashSet};

use proto::status::{Place, Placement};
use rt::record::{ClientRecord, CycleRecord, UNKNOWN_CPU};
use rt::sync::Ordering;
use sys::clock::now_ns;

use super::Control;
use crate::order::{Order, order};
use crate::placement::{Costs, Graph, Observed, expected_ns, keep, schedule};
use crate::release::{Release, Why};

/// The CPUs to place clients on, and what hops between them cost.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The first is the driver thread's.
    pub cpus: Vec<u32>,
    /// As measured when the server started.
    pub costs: Costs,
}

/// The CPU of each client.
type Assignment = HashMap<u32, u32>;

/// Where the clients are.
#[derive(Debug)]
pub(super) struct Places {
    ground: Ground,
    observed: Observed,
    /// What the next plan says.
    current: Assignment,
    /// The first plan that says so.
    current_since: u64,
    /// When it is looked next: by the clock, or earlier because the graph has changed.
    look_at_ns: u64,
    /// ... by the clock.
    look_by_ns: u64,
}

/// How often it is looked whether durations have moved so far that another schedule is better.
const LOOK_NS: u64 = 1_000_000_000;
/// ... and how soon when the graph has changed and changes no more. The search for a schedule takes longer than the rest
/// of a plan, and neither sound nor requests wait for it.
const LOOK_AFTER_CHANGE_NS: u64 = 50_000_000;

impl Places {
    pub(super) fn new(ground: Ground) -> Self {
        Self {
            ground,
            observed: Observed::default(),
            current: HashMap::new(),
            current_since: 0,
            look_at_ns: 0,
            look_by_ns: 0,
        }
    }

    /// The CPU of a client, if it is to stay on one.
    pub(super) fn cpu(&self, client: u32) -> Option<u32> {
        self.current.get(&client).copied()
    }

    /// The driver thread's.
    pub(super) fn driver_cpu(&self) -> Option<u32> {
        self.ground.cpus.first().copied()
    }

    /// Whether so many clients of a CPU, if they wait for the driver alone, are woken by a thread there.
    pub(super) fn are_roused(&self, cpu: u32, clients: usize) -> bool {
        self.driver_cpu() != Some(cpu) && clients >= self.ground.costs.roused_from
    }

    /// The next plan, `generation`, has everybody there; true if that is news.
    fn settle(&mut self, assignment: Assignment, generation: u64) -> bool {
        let is_new = self.current != assignment;
        if is_new {
            (self.current, self.current_since) = (assignment, generation);
        }
        is_new
    }

    /// A cycle's records begin.
    pub(super) fn note_cycle(&mut self, cycle: CycleRecord) {
        self.observed.begin(cycle, self.ground.costs);
    }
}

impl Control {
    /// Gives every client of a plan a place: its own, or one around the others. Whether all should move is looked at
    /// once the plan is out.
    pub(super) fn place(&mut self, order: &Order) {
        let next = self.placed(order, keep);
        let soon_ns = now_ns() + LOOK_AFTER_CHANGE_NS;
        let generation = self.plans.next_generation();
        if let Some((places, next)) = self.places.as_mut().zip(next) {
            places.settle(next, generation);
            places.look_at_ns = soon_ns.min(places.look_by_ns);
        }
    }

    /// Asks for another plan if the graph or its durations have changed so far that clients should move.
    pub(super) fn look_at_places(&mut self) {
        let now_ns = now_ns();
        let Some(places) = self.places.as_mut().filter(|places| places.look_at_ns <= now_ns) else { return };
        places.look_by_ns = now_ns + LOOK_NS;
        places.look_at_ns = places.look_by_ns;
        places.observed.look(places.ground.costs);
        let order = order(&self.parts.model, &self.members());
        let next = self.placed(&order, schedule);
        let generation = self.plans.next_generation();
        if let Some((places, next)) = self.places.as_mut().zip(next)
            && places.settle(next, generation)
        {
            self.plans.need(now_ns);
        }
    }

    /// Has a rouser ready on each CPU where the graph has enough clients who wait for the driver alone.
    pub(super) fn prepare_rousers(&mut self, order: &Order) {
        let Some((places, priority)) = self.places.as_mut().zip(self.parts.config.realtime_priority) else {
            return;
        };
        let followers: HashSet<u32> = order.edges.iter().map(|(_, follower)| *follower).collect();
        let mut counts: HashMap<u32, usize> = HashMap::new();
        let first = order.clients.iter().filter(|client| !followers.contains(client));
        for cpu in first.filter_map(|client| places.cpu(*client)) {
            *counts.entry(cpu).or_default() += 1;
        }
        for (cpu, count) in counts {
            if places.are_roused(cpu, count) && !self.rousers.prepare(cpu, priority, &self.parts.shared) {
                places.ground.costs.roused_from = usize::MAX;
            }
        }
    }

    /// One more record of a cycle: what hops take, and whether the client runs where it is told. In freewheel no CPU
    /// sleeps, and nobody is real-time.
    pub(super) fn note_place(&mut self, record: ClientRecord) {
        let Some(places) = self.places.as_mut().filter(|_| !self.freewheels) else { return };
        places.observed.note(record);
        let is_told = self.newest.cycle == record.cycle && self.newest.plan >= places.current_since;
        let has_said_where = record.finished_ns != 0 && record.cpu != UNKNOWN_CPU;
        let told = places.cpu(record.client).filter(|_| is_told && has_said_where);
        let Some(slot) = self.clients.get_mut(&record.client) else { return };
        let Some(cpu) = told else { return };
        if !slot.astray.note(cpu != u32::from(record.cpu)) {
            return;
        }
        let now_ns = now_ns();
        if self.parts.config.cpus.is_none() {
            if slot.release.begin(now_ns, Why::Refused(cpu)) {
                self.plans.need(now_ns);
            }
        } else if !std::mem::replace(&mut slot.said_astray, true) {
            let name = self.client_name(record.client);
            eprintln!(
                "consort: client '{name}' does not run on CPU {cpu}, where it is told to: its own affinity or its cpuset keeps \
                 it elsewhere"
            );
        }
    }

    /// What places were chosen by.
    pub(super) fn placement(&self, order: &Order) -> Option<Placement> {
        let Places { ground, observed, current, .. } = self.places.as_ref()?;
        let (costs, graph) = (observed.costs(ground.costs), self.graph(order)?);
        let expected_ns = |assignment| expected_ns(&graph, costs, &ground.cpus, assignment);
        Some(Placement {
            cpus: ground.cpus.clone(),
            hop_ns: costs.same_cpu.hop_ns,
            cross_hop_ns: costs.cross_cpu.hop_ns,
            expected_ns: expected_ns(current),
            alone_ns: expected_ns(&Assignment::new()),
        })
    }

    /// Where a client of the graph is told to run.
    pub(super) fn place_of(&self, client: u32, order: &Order) -> Option<Place> {
        let places = self.places.as_ref()?;
        let Some(cpu) = places.cpu(client) else {
            let (why, left_ns) = self.clients.get(&client)?.release.now(now_ns())?;
            let left_ms = left_ns / 1_000_000;
            return Some(match why {
                Why::Late => Place::Late { left_ms },
                Why::Refused(cpu) => Place::Refused { cpu, left_ms },
            });
        };
        let predecessors: Vec<u32> =
            order.edges.iter().filter(|(_, follower)| *follower == client).map(|(other, _)| *other).collect();
        // Of those on its CPU, the last one to run.
        let here = |other: &&u32| predecessors.contains(other) && places.cpu(**other) == Some(cpu);
        let waker = order.clients.iter().rfind(here).map(|other| self.client_name(*other).to_owned());
        let is_woken_here = waker.is_some() || (predecessors.is_empty() && places.driver_cpu() == Some(cpu));
        Some(if is_woken_here { Place::After { cpu, waker } } else { Place::Beside { cpu } })
    }

    fn client_name(&self, client: u32) -> &str {
        self.parts.model.client(client).map_or("", |client| &client.name)
    }

    /// Where `choose` puts the clients, beginning from where they are.
    fn placed(
        &self,
        order: &Order,
        choose: impl FnOnce(&Graph, Costs, &[u32], &Assignment) -> Assignment,
    ) -> Option<Assignment> {
        let Places { ground, observed, current, .. } = self.places.as_ref()?;
        Some(choose(&self.graph(order)?, observed.costs(ground.costs), &ground.cpus, current))
    }

    /// The clients that are told where to run, and how long they take.
    fn graph<'a>(&self, order: &'a Order) -> Option<Graph<'a>> {
        let places = self.places.as_ref()?;
        let now_ns = now_ns();
        let placed = order.clients.iter().filter_map(|client| {
            // Of some CPUs only, a client that is released would have all: it stays.
            let stays = |release: Release| !release.is_released(now_ns) || self.parts.config.cpus.is_some();
            let slot = self.clients.get(client).filter(|slot| stays(slot.release))?;
            Some((*client, slot.measured.duration_ns()))
        });
        let driver_ns = self.parts.shared.books_ns.load(Ordering::Relaxed) + places.observed.leave_ns();
        Some(Graph { driver_ns, clients: placed.collect(), edges: &order.edges })
    }
}
