//! List scheduling of the critical path, then a bounded search around what it found.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::simulation::{DRIVER_CPU, Score, Simulation, Tasks, start_ns};
use super::{Costs, Graph};

/// What the search may do in all, counted in clients and edges simulated: some 20 ns each on
/// current processors.
const SEARCH_STEPS: usize = 30_000;
/// How many clients of a large graph the search moves at once before it looks around.
const MOST_SHUFFLED: usize = 8;

/// Says for every client on which of `cpus` it runs; `cpus[0]` is the driver's. Nobody has a CPU if
/// there are none.
///
/// `before` is where clients run now. It stays so, and only those that are missing there (or whose
/// CPU is not among `cpus`) find a place around the others, unless a new schedule ends earlier by
/// more than a tenth and more than one hop: to move costs caches, and measured durations tremble.
#[must_use]
pub fn schedule(
    graph: &Graph,
    costs: Costs,
    cpus: &[u32],
    before: &HashMap<u32, u32>,
) -> HashMap<u32, u32> {
    assign(graph, cpus, before, |tasks, before| choose(tasks, costs, cpus.len(), before))
}

/// As [`schedule`], without its search: who runs somewhere `before` stays there, and the others
/// find a place around them.
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

/// How long the graph takes from the driver's release of the first clients to the end of the last
/// one, in nanoseconds, if everybody runs on the CPU that `assignment` says, and whoever is missing
/// there with the driver, on `cpus[0]`.
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

/// Has `choose` work with places in `cpus` instead of CPUs, and places in the graph instead of
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

/// The best assignment found, unless it is hardly better than to leave everybody where it runs.
fn choose(tasks: &Tasks, costs: Costs, cpus: usize, before: &[Option<usize>]) -> Vec<usize> {
    let least_ns = least_ns(tasks, costs);
    let mut search = Search::new(tasks, costs, cpus);
    let alone = search.scored(vec![DRIVER_CPU; tasks.count()]);
    let anywhere = search.scored(list(tasks, costs, cpus, before, |_| None));
    let best = alone.min(anywhere);
    if before.iter().all(Option::is_none) {
        return search.improve(best, least_ns).cpu_of;
    }
    let kept = search.scored(list(tasks, costs, cpus, before, |client| before[client]));
    let margin_ns = (kept.score.makespan_ns / 10).max(costs.same_cpu.hop_ns);
    let wanted_ns = kept.score.makespan_ns.saturating_sub(margin_ns);
    if least_ns >= wanted_ns {
        return kept.cpu_of;
    }
    let best = search.improve(best.min(kept.clone()), least_ns);
    if best.score.makespan_ns < wanted_ns { best.cpu_of } else { kept.cpu_of }
}

/// Gives a CPU to one client after the other, of those whose predecessors have one always that with
/// the longest path to the end: the CPU `pinned` to it, or else where it would finish first.
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
    // As if the first were all woken on the driver's CPU.
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

/// For each client, the time from its start to the end of the last that waits for it, if all ran on
/// one CPU each.
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

/// An assignment and what it is worth; the best compares least.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Scored {
    score: Score,
    cpu_of: Vec<usize>,
}

/// A search for better assignments, within a bounded number of steps.
struct Search<'a> {
    simulation: Simulation<'a>,
    cpus: usize,
    /// Assignments that may still be simulated.
    trials_left: usize,
    chance: Chance,
}

impl<'a> Search<'a> {
    fn new(tasks: &'a Tasks, costs: Costs, cpus: usize) -> Self {
        let edges: usize = tasks.followers.iter().map(Vec::len).sum();
        let trials_left = SEARCH_STEPS / (tasks.count() + edges).max(1);
        Self {
            simulation: Simulation::new(tasks, costs, cpus),
            cpus,
            trials_left,
            chance: Chance(1),
        }
    }

    fn scored(&mut self, cpu_of: Vec<usize>) -> Scored {
        Scored { score: self.simulation.run(&cpu_of), cpu_of }
    }

    /// Descends from `start`; then, again and again, from the best that was found, shuffled: most
    /// of a small graph, a few clients of a large one. Ends where no time can be saved any more.
    fn improve(&mut self, start: Scored, least_ns: u64) -> Scored {
        let mut best = start;
        let mut trial = best.clone();
        while self.trials_left > 0 && best.score.makespan_ns > least_ns {
            self.descend(&mut trial);
            if trial.score <= best.score {
                best.clone_from(&trial);
            }
            trial.cpu_of.clone_from(&best.cpu_of);
            for _ in 0..trial.cpu_of.len().min(MOST_SHUFFLED) {
                let client = self.chance.below(trial.cpu_of.len());
                trial.cpu_of[client] = self.chance.below(self.cpus);
            }
            trial.score = self.simulation.run(&trial.cpu_of);
            self.trials_left = self.trials_left.saturating_sub(1);
        }
        best
    }

    /// Moves one client after the other, as long as that makes anything better.
    fn descend(&mut self, trial: &mut Scored) {
        let mut improved = true;
        while improved {
            improved = false;
            for client in 0..trial.cpu_of.len() {
                improved |= self.move_one(trial, client);
            }
        }
    }

    /// Puts a client on the CPU where it is best for all.
    fn move_one(&mut self, trial: &mut Scored, client: usize) -> bool {
        let mut improved = false;
        // Of the CPUs that nobody has, one is as good as the other.
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
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}
