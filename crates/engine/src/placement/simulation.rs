//! A cycle on paper: when would every client run?

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Costs, Graph};

/// The CPU of the driver thread; here, CPUs are counted from zero.
pub(super) const DRIVER_CPU: usize = 0;

/// A graph whose clients are counted from zero, in their order.
#[derive(Debug)]
pub(super) struct Tasks {
    /// How long the driver keeps its CPU once it has woken the first.
    pub driver_ns: u64,
    pub durations_ns: Vec<u64>,
    pub predecessors: Vec<Vec<usize>>,
    pub followers: Vec<Vec<usize>>,
}

impl Tasks {
    pub fn new(graph: &Graph) -> Self {
        let count = graph.clients.len();
        let places: HashMap<u32, usize> =
            graph.clients.iter().enumerate().map(|(place, (client, _))| (*client, place)).collect();
        let (mut predecessors, mut followers) = (vec![vec![]; count], vec![vec![]; count]);
        for (source, destination) in graph.edges {
            let (Some(&source), Some(&destination)) = (places.get(source), places.get(destination)) else {
                continue;
            };
            if source < destination {
                predecessors[destination].push(source);
                followers[source].push(destination);
            }
        }
        let durations_ns = graph.clients.iter().map(|(_, duration_ns)| *duration_ns).collect();
        Self { driver_ns: graph.driver_ns, durations_ns, predecessors, followers }
    }

    pub fn count(&self) -> usize {
        self.durations_ns.len()
    }
}

/// How good an assignment is; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// From the driver's wake of the first clients to the end of the last.
    pub makespan_ns: u64,
    /// Hops to another CPU, which cost energy where they cost no time.
    pub crossings: usize,
}

/// Runs assignments of the same graph; keeps its memory from one to the next.
#[derive(Debug)]
pub(super) struct Simulation<'a> {
    tasks: &'a Tasks,
    costs: Costs,
    /// Per client: predecessors that have not run.
    waiting: Vec<usize>,
    /// Per client: when the last hop to it arrives, of those known.
    ready_ns: Vec<u64>,
    /// Per CPU: until when it is busy.
    free_ns: Vec<u64>,
    /// Per CPU: who is ready and when, first come first.
    queues: Vec<BinaryHeap<Reverse<(u64, usize)>>>,
}

impl<'a> Simulation<'a> {
    pub fn new(tasks: &'a Tasks, costs: Costs, cpus: usize) -> Self {
        Self {
            tasks,
            costs,
            waiting: vec![0; tasks.count()],
            ready_ns: vec![0; tasks.count()],
            free_ns: vec![0; cpus],
            queues: vec![BinaryHeap::new(); cpus],
        }
    }

    /// Everybody on the CPU given.
    pub fn run(&mut self, cpu_of: &[usize]) -> Score {
        self.wake_first(cpu_of);
        let mut makespan_ns = 0;
        while let Some((start_ns, cpu)) = self.next_start() {
            let Some(Reverse((_, client))) = self.queues[cpu].pop() else { break };
            let mut at_ns = start_ns.saturating_add(self.tasks.durations_ns[client]);
            makespan_ns = at_ns.max(makespan_ns);
            for &follower in &self.tasks.followers[client] {
                let handover = self.costs.between(cpu, cpu_of[follower]);
                self.ready_ns[follower] = at_ns.saturating_add(handover.hop_ns).max(self.ready_ns[follower]);
                self.waiting[follower] -= 1;
                if self.waiting[follower] == 0 {
                    self.queues[cpu_of[follower]].push(Reverse((self.ready_ns[follower], follower)));
                    at_ns = at_ns.saturating_add(handover.wake_ns);
                }
            }
            self.free_ns[cpu] = at_ns;
        }
        Score { makespan_ns, crossings: crossings(self.tasks, cpu_of) }
    }

    /// The driver wakes everybody who waits for nobody else.
    fn wake_first(&mut self, cpu_of: &[usize]) {
        self.free_ns.fill(0);
        self.ready_ns.fill(0);
        let mut at_ns: u64 = 0;
        for (client, predecessors) in self.tasks.predecessors.iter().enumerate() {
            self.waiting[client] = predecessors.len();
            if predecessors.is_empty() {
                let cpu = cpu_of[client];
                let handover = self.costs.between(DRIVER_CPU, cpu);
                self.queues[cpu].push(Reverse((at_ns.saturating_add(handover.hop_ns), client)));
                at_ns = at_ns.saturating_add(handover.wake_ns);
            }
        }
        self.free_ns[DRIVER_CPU] = at_ns.saturating_add(self.tasks.driver_ns);
    }

    /// The client that starts before all others that have not run, as its time and CPU. Nobody who becomes ready
    /// later can have been ready before it, so that each CPU's queue is in order.
    fn next_start(&self) -> Option<(u64, usize)> {
        let starts = self.queues.iter().enumerate().filter_map(|(cpu, queue)| {
            let Reverse((ready_ns, _)) = queue.peek()?;
            Some((start_ns(self.costs, self.free_ns[cpu], *ready_ns), cpu))
        });
        starts.min()
    }
}

/// When a client runs that is ready then, on a CPU that is busy until then.
pub(super) fn start_ns(costs: Costs, free_ns: u64, ready_ns: u64) -> u64 {
    free_ns.saturating_add(costs.switch_ns()).max(ready_ns)
}

fn crossings(tasks: &Tasks, cpu_of: &[usize]) -> usize {
    let of_client = |client: usize| {
        let predecessors = &tasks.predecessors[client];
        let from_driver = predecessors.is_empty() && cpu_of[client] != DRIVER_CPU;
        let from_others = predecessors.iter().filter(|other| cpu_of[**other] != cpu_of[client]).count();
        usize::from(from_driver) + from_others
    };
    (0..tasks.count()).map(of_client).sum()
}
