//! List scheduling of the critical path, then a bounded search around what it found.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::simulation::{DRIVER_CPU, Score, Simulation, Tasks, start_ns};
use super::{Costs, Graph};

/// Limit of the search, counted in simulated clients and edges: about 20 ns each on current
/// processors.
const SEARCH_STEPS: usize = 30_000;
/// How many clients of a large graph the search moves at once before it descends again.
const MOST_SHUFFLED: usize = 8;

/// Assigns one of `cpus` to every client; `cpus[0]` is the driver's. Without CPUs, the assignment
/// is empty.
///
/// `before` is the current assignment. It is kept, and only clients that are missing there (or
/// whose CPU is not among `cpus`) are added, unless a new schedule ends earlier by more than a
/// tenth and by more than one hop: moving a client costs warm caches, and measured durations
/// fluctuate.
#[must_use]
pub fn schedule(
    graph: &Graph,
    costs: Costs,
    cpus: &[u32],
    before: &HashMap<u32, u32>,
) -> HashMap<u32, u32> {
    assign(graph, cpus, before, |tasks, before| choose(tasks, costs, cpus.len(), before))
}

/// Like [`schedule`], without the search: clients with a CPU in `before` keep it, and the others
/// are added.
#[must_use]
pub fn keep(
    graph: &Graph,
    costs: Costs,
    cpus: &[u32],
    before: &HashMap<u32, u32>,
) -> HashMap<u32, u32> {
    assign(graph, cpus, before, |tasks, before| {
        list(tasks, costs, cpus.len(), before, |client| before[client])
    })
}

/// How long the graph takes with `assignment`, from the driver's release of the first clients to
/// the end of the last one, in nanoseconds. Clients that are missing in it run on the driver's CPU,
/// `cpus[0]`.
#[must_use]
pub fn expected_ns(
    graph: &Graph,
    costs: Costs,
    cpus: &[u32],
    assignment: &HashMap<u32, u32>,
) -> u64 {
    let place = |client: &u32| cpus.iter().position(|cpu| Some(cpu) == assignment.get(client));
    let cpu_of: Vec<usize> =
        graph.clients.iter().map(|(client, _)| place(client).unwrap_or(DRIVER_CPU)).collect();
    Simulation::new(&Tasks::new(graph), costs, cpus.len().max(1)).run(&cpu_of).makespan_ns
}

/// Calls `choose` with indices into `cpus` instead of CPUs, and indices into the graph instead of
/// clients.
fn assign(
    graph: &Graph,
    cpus: &[u32],
    before: &HashMap<u32, u32>,
    choose: impl FnOnce(&Tasks, &[Option<usize>]) -> Vec<usize>,
) -> HashMap<u32, u32> {
    if cpus.is_empty() {
        return HashMap::new();
    }
    let before: Vec<Option<usize>> = graph
        .clients
        .iter()
        .map(|(client, _)| {
            before.get(client).and_then(|cpu| cpus.iter().position(|other| other == cpu))
        })
        .collect();
    let chosen = choose(&Tasks::new(graph), &before);
    graph.clients.iter().zip(chosen).map(|((client, _), cpu)| (*client, cpus[cpu])).collect()
}

/// The best assignment found, unless it is hardly better than leaving every client where it is.
fn choose(tasks: &Tasks, costs: Costs, cpus: usize, before: &[Option<usize>]) -> Vec<usize> {
    let least_ns = least_ns(tasks, costs);
    let mut search = Search::new(tasks, costs, cpus);
    let alone = search.scored(vec![DRIVER_CPU; tasks.count()]);
    let anywhere = search.scored(list(tasks, costs, cpus, before, |_| None));
    let best = alone.clone().min(anywhere);
    if before.iter().all(Option::is_none) {
        return search.improve(best, least_ns).cpu_of;
    }
    let kept = search.scored(list(tasks, costs, cpus, before, |client| before[client]));
    // Where nothing can run beside something else, other CPUs gain nothing and may sleep, such as
    // those of a chain that grew across two. Elsewhere, what they gain is known only while they
    // are used.
    let serial_ns = least_ns.saturating_add(tasks.driver_ns).saturating_add(costs.same_cpu.hop_ns);
    let is_serial = alone.score.makespan_ns <= serial_ns.min(kept.score.makespan_ns);
    let kept = if is_serial { alone.clone() } else { kept };
    let margin_ns = (kept.score.makespan_ns / 10).max(costs.same_cpu.hop_ns);
    let wanted_ns = kept.score.makespan_ns.saturating_sub(margin_ns);
    if least_ns >= wanted_ns {
        return kept.cpu_of;
    }
    let best = search.improve(best.min(kept.clone()), least_ns);
    if best.score.makespan_ns < wanted_ns { best.cpu_of } else { kept.cpu_of }
}

/// Assigns a CPU to one client after the other: always to the one with the longest path to the end
/// among those whose predecessors have a CPU. It is the one in `pinned`, or else the one on which
/// the client would finish first.
fn list(
    tasks: &Tasks,
    costs: Costs,
    cpus: usize,
    before: &[Option<usize>],
    pinned: impl Fn(usize) -> Option<usize>,
) -> Vec<usize> {
    let paths_ns = longest_paths(tasks, costs);
    let mut waiting: Vec<usize> = tasks.predecessors.iter().map(Vec::len).collect();
    let (mut cpu_of, mut finish_ns) = (vec![DRIVER_CPU; tasks.count()], vec![0; tasks.count()]);
    let mut free_ns = vec![0; cpus];
    // Estimated as if all the first clients were woken on the driver's CPU.
    let wakes =
        tasks.predecessors.iter().filter(|predecessors| predecessors.is_empty()).count() as u64;
    free_ns[DRIVER_CPU] = tasks.driver_ns.saturating_add(wakes * costs.same_cpu.wake_ns);
    let first = (0..tasks.count()).filter(|client| waiting[*client] == 0);
    let mut ready: BinaryHeap<_> =
        first.map(|client| (paths_ns[client], Reverse(client))).collect();
    while let Some((_, Reverse(client))) = ready.pop() {
        let predecessors = &tasks.predecessors[client];
        let last = predecessors.iter().max_by_key(|other| finish_ns[**other]);
        let waker_cpu = last.map_or(DRIVER_CPU, |other| cpu_of[*other]);
        let finish_on = |cpu: usize| {
            let hops = predecessors.iter().map(|other| (finish_ns[*other], cpu_of[*other]));
            let arrivals = hops.map(|(from_ns, from): (u64, usize)| {
                from_ns.saturating_add(costs.between(from, cpu).hop_ns)
            });
            let ready_ns = arrivals.max().unwrap_or_else(|| costs.between(DRIVER_CPU, cpu).hop_ns);
            start_ns(costs, free_ns[cpu], ready_ns).saturating_add(tasks.durations_ns[client])
        };
        let earliest =
            |cpu: &usize| (finish_on(*cpu), *cpu != waker_cpu, before[client] != Some(*cpu));
        let cpu = pinned(client).or_else(|| (0..cpus).min_by_key(earliest)).unwrap_or(DRIVER_CPU);
        finish_ns[client] = finish_on(cpu);
        free_ns[cpu] = finish_ns[client];
        cpu_of[client] = cpu;
        for &follower in &tasks.followers[client] {
            waiting[follower] -= 1;
            if waiting[follower] == 0 {
                ready.push((paths_ns[follower], Reverse(follower)));
            }
        }
    }
    cpu_of
}

/// For each client, the time from its start to the end of the last one that waits for it, with a
/// CPU for each client.
fn longest_paths(tasks: &Tasks, costs: Costs) -> Vec<u64> {
    let mut paths_ns = vec![0_u64; tasks.count()];
    for client in (0..tasks.count()).rev() {
        let after = tasks.followers[client]
            .iter()
            .map(|other| paths_ns[*other].saturating_add(costs.same_cpu.hop_ns));
        paths_ns[client] = after.max().unwrap_or(0).saturating_add(tasks.durations_ns[client]);
    }
    paths_ns
}

/// No schedule ends before the longest chain can.
fn least_ns(tasks: &Tasks, costs: Costs) -> u64 {
    longest_paths(tasks, costs).into_iter().max().unwrap_or(0).saturating_add(costs.same_cpu.hop_ns)
}

/// An assignment and its score; the best compares least.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ScoredAssignment {
    score: Score,
    cpu_of: Vec<usize>,
}

/// A search for better assignments, within a bounded number of steps.
struct Search<'a> {
    simulation: Simulation<'a>,
    cpus: usize,
    /// Assignments that may still be simulated.
    trials_left: usize,
    random: RandomSequence,
}

impl<'a> Search<'a> {
    fn new(tasks: &'a Tasks, costs: Costs, cpus: usize) -> Self {
        let edges: usize = tasks.followers.iter().map(Vec::len).sum();
        let trials_left = SEARCH_STEPS / (tasks.count() + edges).max(1);
        Self {
            simulation: Simulation::new(tasks, costs, cpus),
            cpus,
            trials_left,
            random: RandomSequence(1),
        }
    }

    fn scored(&mut self, cpu_of: Vec<usize>) -> ScoredAssignment {
        ScoredAssignment { score: self.simulation.run(&cpu_of), cpu_of }
    }

    /// Descends from `start`, and then repeatedly from the best assignment found, shuffled: most of
    /// a small graph, a few clients of a large one. Ends when no more time can be saved.
    fn improve(&mut self, start: ScoredAssignment, least_ns: u64) -> ScoredAssignment {
        let mut best = start;
        let mut trial = best.clone();
        while self.trials_left > 0 && best.score.makespan_ns > least_ns {
            self.descend(&mut trial);
            if trial.score <= best.score {
                best.clone_from(&trial);
            }
            trial.cpu_of.clone_from(&best.cpu_of);
            for _ in 0..trial.cpu_of.len().min(MOST_SHUFFLED) {
                let client = self.random.below(trial.cpu_of.len());
                trial.cpu_of[client] = self.random.below(self.cpus);
            }
            trial.score = self.simulation.run(&trial.cpu_of);
            self.trials_left = self.trials_left.saturating_sub(1);
        }
        best
    }

    /// Moves one client after the other, as long as that improves the score.
    fn descend(&mut self, trial: &mut ScoredAssignment) {
        let mut improved = true;
        while improved {
            improved = false;
            for client in 0..trial.cpu_of.len() {
                improved |= self.move_one(trial, client);
            }
        }
    }

    /// Moves a client to the CPU with the best score.
    fn move_one(&mut self, trial: &mut ScoredAssignment, client: usize) -> bool {
        let mut improved = false;
        // All unused CPUs are equally good: one of them is tried.
        let used = trial.cpu_of.iter().max().map_or(0, |highest| highest + 1);
        for cpu in 0..self.cpus.min(used + 1) {
            let from = trial.cpu_of[client];
            if cpu == from || self.trials_left == 0 {
                continue;
            }
            self.trials_left -= 1;
            trial.cpu_of[client] = cpu;
            let score = self.simulation.run(&trial.cpu_of);
            if score < trial.score {
                (trial.score, improved) = (score, true);
            } else {
                trial.cpu_of[client] = from;
            }
        }
        improved
    }
}

/// A linear congruential sequence (Knuth's constants): the same graph always gets the same
/// schedule.
struct RandomSequence(u64);

impl RandomSequence {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}
