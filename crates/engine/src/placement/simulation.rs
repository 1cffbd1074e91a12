//! Simulation of a cycle: when would each client run?

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Costs, Graph};

/// The CPU of the driver thread; here, CPUs are counted from zero.
pub(super) const DRIVER_CPU: usize = 0;

/// A graph whose clients are counted from zero, in their order.
#[derive(Debug)]
pub(super) struct Tasks {
    /// How long the driver keeps its CPU once it has woken the first clients.
    pub driver_ns: u64,
    pub durations_ns: Vec<u64>,
    pub predecessors: Vec<Vec<usize>>,
    pub followers: Vec<Vec<usize>>,
}

impl Tasks {
    pub fn new(graph: &Graph) -> Self {
        let count = graph.clients.len();
        let indices: HashMap<u32, usize> =
            graph.clients.iter().enumerate().map(|(index, (client, _))| (*client, index)).collect();
        let (mut predecessors, mut followers) = (vec![vec![]; count], vec![vec![]; count]);
        for (source, destination) in graph.edges {
            let (Some(&source), Some(&destination)) =
                (indices.get(source), indices.get(destination))
            else {
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
    /// Per client: latest arrival of the hops to it that are known.
    ready_ns: Vec<u64>,
    /// Per CPU: until when it is busy.
    free_ns: Vec<u64>,
    /// Per CPU: when which clients are ready, earliest first.
    queues: Vec<BinaryHeap<Reverse<(u64, usize)>>>,
    wakes: WakeSequence,
}

/// The CPUs on which a waker has already woken a client. Further clients there cost the waker less
/// than the first, and on another CPU they run as soon as it is awake.
#[derive(Debug)]
struct WakeSequence {
    costs: Costs,
    waker_cpu: usize,
    /// Number of this waker.
    waker: u64,
    /// Per CPU: the last waker that woke it, and when it was awake.
    up: Vec<(u64, u64)>,
}

impl WakeSequence {
    fn new(costs: Costs, cpus: usize) -> Self {
        Self { costs, waker_cpu: DRIVER_CPU, waker: 1, up: vec![(0, 0); cpus] }
    }

    /// Begins the wake-ups of another waker, on this CPU.
    fn begin(&mut self, waker_cpu: usize) {
        self.waker_cpu = waker_cpu;
        self.waker += 1;
    }

    /// Wakes a client on a CPU; returns when it is ready, and when the waker goes on.
    fn wake(&mut self, cpu: usize, at_ns: u64) -> (u64, u64) {
        let Costs { same_cpu, cross_cpu, further_wake_ns, .. } = self.costs;
        let after = |duration_ns| at_ns.saturating_add(duration_ns);
        let (woken_by, up_ns) = self.up[cpu];
        if woken_by == self.waker {
            return (after(same_cpu.hop_ns).max(up_ns), after(further_wake_ns));
        }
        let first = if cpu == self.waker_cpu { same_cpu } else { cross_cpu };
        self.up[cpu] = (self.waker, after(first.hop_ns));
        (after(first.hop_ns), after(first.wake_ns))
    }
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
            wakes: WakeSequence::new(costs, cpus),
        }
    }

    /// Simulates a cycle in which each client runs on the given CPU.
    pub fn run(&mut self, cpu_of: &[usize]) -> Score {
        self.wake_first(cpu_of);
        let mut makespan_ns = 0;
        while let Some((start_ns, cpu)) = self.next_start() {
            let Some(Reverse((_, client))) = self.queues[cpu].pop() else { break };
            let mut at_ns = start_ns.saturating_add(self.tasks.durations_ns[client]);
            makespan_ns = at_ns.max(makespan_ns);
            self.wakes.begin(cpu);
            let followers = || self.tasks.followers[client].iter();
            let far = followers().filter(|other| cpu_of[**other] != cpu);
            for &follower in far.chain(followers().filter(|other| cpu_of[**other] == cpu)) {
                let to = cpu_of[follower];
                self.waiting[follower] -= 1;
                if self.waiting[follower] > 0 {
                    let hop_ns = self.costs.between(cpu, to).hop_ns;
                    self.ready_ns[follower] =
                        at_ns.saturating_add(hop_ns).max(self.ready_ns[follower]);
                    continue;
                }
                let (ready_ns, woken_ns) = self.wakes.wake(to, at_ns);
                self.queues[to].push(Reverse((ready_ns.max(self.ready_ns[follower]), follower)));
                at_ns = woken_ns;
            }
            self.free_ns[cpu] = at_ns;
        }
        Score { makespan_ns, crossings: crossings(self.tasks, cpu_of) }
    }

    /// The driver wakes all clients that wait for no other: those on other CPUs first, then those
    /// on its own.
    fn wake_first(&mut self, cpu_of: &[usize]) {
        self.free_ns.fill(0);
        self.ready_ns.fill(0);
        self.wakes.begin(DRIVER_CPU);
        for (waiting, predecessors) in self.waiting.iter_mut().zip(&self.tasks.predecessors) {
            *waiting = predecessors.len();
        }
        let mut at_ns = 0;
        for near in [false, true] {
            for (client, &cpu) in cpu_of.iter().enumerate().take(self.tasks.count()) {
                if self.waiting[client] > 0 || (cpu == DRIVER_CPU) != near {
                    continue;
                }
                let (ready_ns, woken_ns) = self.wakes.wake(cpu, at_ns);
                self.queues[cpu].push(Reverse((ready_ns, client)));
                at_ns = woken_ns;
            }
        }
        self.free_ns[DRIVER_CPU] = at_ns.saturating_add(self.tasks.driver_ns);
    }

    /// The time and CPU of the next client to start. No client that becomes ready later can have
    /// been ready before it, so that each CPU's queue is in order.
    fn next_start(&self) -> Option<(u64, usize)> {
        let starts = self.queues.iter().enumerate().filter_map(|(cpu, queue)| {
            let Reverse((ready_ns, _)) = queue.peek()?;
            Some((start_ns(self.costs, self.free_ns[cpu], *ready_ns), cpu))
        });
        starts.min()
    }
}

/// Start time of a client that is ready at `ready_ns`, on a CPU that is busy until `free_ns`.
pub(super) fn start_ns(costs: Costs, free_ns: u64, ready_ns: u64) -> u64 {
    free_ns.saturating_add(costs.switch_ns()).max(ready_ns)
}

fn crossings(tasks: &Tasks, cpu_of: &[usize]) -> usize {
    let of_client = |client: usize| {
        let predecessors = &tasks.predecessors[client];
        let from_driver = predecessors.is_empty() && cpu_of[client] != DRIVER_CPU;
        let from_others =
            predecessors.iter().filter(|other| cpu_of[**other] != cpu_of[client]).count();
        usize::from(from_driver) + from_others
    };
    (0..tasks.count()).map(of_client).sum()
}
