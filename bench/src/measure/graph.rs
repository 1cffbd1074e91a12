//! Chains and fans of clients without work: what a cycle costs beyond the clients' own.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::arguments::Arguments;
use crate::client::{Node, Patcher};
use crate::measure::{Bench, subject, us};
use crate::proc::{self, Usage};
use crate::recording::{Record, Recording, complete_cycles};
use crate::report::{Report, Subject};
use crate::server::{PERIOD_NS, QUANTUM_FRAMES, RATE_HZ, Server, Settings};
use crate::switches::{self, Span};
use crate::workplace::Workplace;

/// How the clients of a graph are connected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// Each feeds the next.
    Chain,
    /// None feeds another.
    Fan,
    /// All others feed the last.
    Mix,
    /// All others feed every input of the last, which has this many: all its inputs have the same
    /// sources.
    Bus(usize),
    /// The first feeds all others.
    Split,
}

/// A graph that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Graph {
    /// How its clients are connected.
    pub shape: Shape,
    /// How many clients it has.
    pub clients: usize,
    /// Inputs of each client, and outputs.
    pub channels: usize,
}

impl Graph {
    const fn new(shape: Shape, clients: usize, channels: usize) -> Self {
        Self { shape, clients, channels }
    }

    /// Pairs of a client and its follower.
    fn edges(self) -> Vec<(usize, usize)> {
        match self.shape {
            Shape::Chain => (1..self.clients).map(|target| (target - 1, target)).collect(),
            Shape::Fan => Vec::new(),
            Shape::Mix | Shape::Bus(_) => {
                (1..self.clients).map(|other| (other - 1, self.clients - 1)).collect()
            }
            Shape::Split => (1..self.clients).map(|other| (0, other)).collect(),
        }
    }

    /// Inputs of a client, and outputs.
    fn ports(self, client: usize) -> (usize, usize) {
        match self.shape {
            Shape::Bus(inputs) if client + 1 == self.clients => (inputs, self.channels),
            _ => (self.channels, self.channels),
        }
    }

    /// Pairs of an output's number and the input's that hears it, for each edge.
    fn connections(self) -> Vec<(usize, usize)> {
        match self.shape {
            Shape::Bus(inputs) => (0..inputs).map(|input| (0, input)).collect(),
            _ => (0..self.channels).map(|channel| (channel, channel)).collect(),
        }
    }

    /// Whether processes that share nothing but futexes can do the same.
    pub fn has_floor(self) -> bool {
        matches!(self.shape, Shape::Chain | Shape::Fan) && self.channels == 1
    }
}

/// The graphs that are measured.
pub const GRAPHS: [Graph; 9] = [
    Graph::new(Shape::Chain, 5, 1),
    Graph::new(Shape::Chain, 20, 1),
    Graph::new(Shape::Fan, 20, 1),
    Graph::new(Shape::Chain, 5, 8),
    Graph::new(Shape::Mix, 9, 1),
    Graph::new(Shape::Bus(2), 9, 1),
    Graph::new(Shape::Bus(8), 9, 1),
    Graph::new(Shape::Bus(32), 9, 1),
    Graph::new(Shape::Split, 21, 1),
];
/// Between the last change and the first counted cycle, so that connects and first page faults are
/// over.
pub const SETTLE: Duration = Duration::from_millis(500);

pub fn run(bench: Bench, graph: Graph) -> Result<()> {
    let Bench { candidate, programs, workplace, arguments, report, .. } = bench;
    let settings = Settings { quantum_frames: arguments.frames, ..Settings::new(arguments.sync) };
    let (server, mut patcher) = Server::start(candidate, programs, workplace, &settings)?;
    let recording = Recording::new(workplace, graph.clients, capacity(arguments.seconds))?;
    let nodes = start_nodes(&server, &mut patcher, &recording, graph)?;
    std::thread::sleep(SETTLE);
    let subject = subject(&server, &nodes[0])?;
    let pids: Vec<u32> = nodes.iter().map(Node::pid).collect();
    let lanes = 0..graph.clients;
    let window = Window::measure(&recording, lanes, (server.pid, &pids), arguments.seconds)?;
    report.priority = report.priority.max(proc::highest_priority(pids[0])?);
    let title = title(graph, arguments);
    window.report(&title, graph.shape, &subject, report);
    let processes = (server.pid, pids.as_slice());
    report_switches(&title, processes, arguments.period_ns(), workplace, &subject, report)?;
    for node in nodes {
        node.close()?;
    }
    patcher.close()?;
    server.stop()
}

/// Starts the clients of a graph, and connects them.
fn start_nodes(
    server: &Server,
    patcher: &mut Patcher,
    recording: &Recording,
    graph: Graph,
) -> Result<Vec<Node>> {
    let ports = |client| graph.ports(client);
    let nodes = spawn_nodes(server, recording, graph.clients, ports, 0)?;
    for (source, target) in graph.edges() {
        for (output, input) in graph.connections() {
            let output = format!("g{source}:out_{output}");
            patcher.connect(&output, &format!("g{target}:in_{input}"))?;
        }
    }
    Ok(nodes)
}

/// Starts clients with as many inputs and outputs as `ports` returns, each of which works for
/// `work_ns`.
pub fn spawn_nodes(
    server: &Server,
    recording: &Recording,
    count: usize,
    ports: impl Fn(usize) -> (usize, usize),
    work_ns: u64,
) -> Result<Vec<Node>> {
    let mut nodes = Vec::with_capacity(count);
    for lane in 0..count {
        let (inputs, outputs) = ports(lane);
        let mut arguments = vec!["tone".into(), inputs.to_string(), outputs.to_string()];
        arguments.extend(recording.arguments(lane));
        arguments.push(work_ns.to_string());
        let node = server.node(&format!("g{lane}"), &arguments)?;
        node.ready()?;
        nodes.push(node);
    }
    Ok(nodes)
}

/// How long the kernel's timestamps are recorded. Recording costs time itself, so it comes after
/// all other measurements.
const SWITCHES: Duration = Duration::from_secs(2);

/// From the driver's wake-up to the first client's, and to the last client's sleep, where the
/// kernel reports them. `processes`: what drives the cycles, and the clients.
pub fn report_switches(
    title: &str,
    (driver, clients): (u32, &[u32]),
    period_ns: u64,
    workplace: &Workplace,
    subject: &Subject,
    report: &mut Report,
) -> Result<()> {
    let Some((_, driver)) = proc::foremost_thread(driver)? else { return Ok(()) };
    let mut threads = HashSet::new();
    for client in clients {
        threads.extend(proc::foremost_thread(*client)?.map(|(_, thread)| thread));
    }
    match switches::record(workplace, SWITCHES) {
        Ok(switches) => {
            let spans = switches::spans(&switches, driver, &threads, period_ns);
            let mut row = |measure: &str, span_ns: fn(&Span) -> u64| {
                let spans_us = spans.iter().map(|span| us(span_ns(span)));
                report.spread(
                    subject,
                    &format!("{title}: driver awake to {measure}"),
                    "µs",
                    spans_us,
                );
            };
            row("first client awake", |span| span.first_ns);
            row("last client asleep", |span| span.last_ns);
        }
        Err(error) => {
            report.note(format!("driver awake to clients awake: not measured: {error:#}"))
        }
    }
    Ok(())
}

/// What the rows of a graph are called.
pub fn title(graph: Graph, arguments: &Arguments) -> String {
    let Graph { shape, clients, channels } = graph;
    let mut title = match shape {
        Shape::Chain => format!("chain of {clients}"),
        Shape::Fan => format!("{clients} in parallel"),
        Shape::Mix => format!("{} into one", clients - 1),
        Shape::Bus(inputs) => format!("bus of {} into {inputs} inputs", clients - 1),
        Shape::Split => format!("one into {}", clients - 1),
    };
    if channels > 1 {
        title += &format!(", {channels} channels");
    }
    if arguments.frames != QUANTUM_FRAMES {
        title += &format!(", {} frames", arguments.frames);
    }
    if arguments.cold_caches {
        title += ", cold caches";
    }
    title
}

/// Records that hold a run of this length at twice the nominal pace, as a driver may catch up after
/// a delay.
pub fn capacity(seconds: u64) -> usize {
    (2 * (seconds + 3) * 1_000_000_000 / PERIOD_NS) as usize
}

/// What was recorded in a span of time.
pub struct Window {
    cycles: Vec<Vec<Record>>,
    begun_cycles: usize,
    driver: Usage,
    clients: Usage,
}

impl Window {
    /// Watches the lanes for `seconds`. `processes` is what drives the cycles, and the clients.
    pub fn measure(
        recording: &Recording,
        lanes: std::ops::Range<usize>,
        processes: (u32, &[u32]),
        seconds: u64,
    ) -> Result<Self> {
        let usage =
            || Ok::<_, anyhow::Error>((Usage::of(&[processes.0])?, Usage::of(processes.1)?));
        let firsts = lanes.clone().map(|lane| recording.count(lane)).collect::<Result<Vec<_>>>()?;
        let before = usage()?;
        std::thread::sleep(Duration::from_secs(seconds));
        let after = usage()?;
        let records = lanes
            .zip(&firsts)
            .map(|(lane, first)| recording.records(lane, *first))
            .collect::<Result<Vec<_>>>()?;
        let cycles = complete_cycles(&records);
        ensure!(!cycles.is_empty(), "no cycle was run by every client");
        let begun_cycles = records.first().map_or(0, Vec::len);
        Ok(Self {
            cycles,
            begun_cycles,
            driver: difference(after.0, before.0),
            clients: difference(after.1, before.1),
        })
    }

    /// Adds the rows of this graph.
    pub fn report(&self, title: &str, shape: Shape, subject: &Subject, report: &mut Report) {
        let cycles = || self.cycles.iter().map(Vec::as_slice);
        let mut row = |measure: &str, spans_ns: &mut dyn Iterator<Item = i64>| {
            let spans_us = spans_ns.map(|ns| ns as f64 / 1000.0);
            report.spread(subject, &format!("{title}: {measure}"), "µs", spans_us);
        };
        match shape {
            Shape::Fan => {}
            Shape::Chain => row("hop", &mut cycles().flat_map(hops_ns)),
            Shape::Mix => row("hop", &mut cycles().map(last_hop_ns)),
            Shape::Bus(_) => {
                row("hop", &mut cycles().map(last_hop_ns));
                row("last source's exit to the reader's", &mut cycles().map(mixed_ns));
            }
            Shape::Split => {
                row("hop to the first", &mut cycles().map(first_hop_ns));
                row("source's exit to the last exit", &mut cycles().map(split_ns));
            }
        }
        self.report_whole(title, subject, report);
        let off = self.cycles.windows(2).map(|two| us(off_period_ns(&two[0], &two[1])));
        report.spread(subject, &format!("{title}: first entry, off the period"), "µs", off);
        let per_cycle = |value: u64| value as f64 / self.begun_cycles as f64;
        let (driver_ns, clients_ns) = (self.driver.cpu_ns, self.clients.cpu_ns);
        for (whose, cpu_ns) in
            [("server", driver_ns), ("clients'", clients_ns), ("all", driver_ns + clients_ns)]
        {
            let cpu_us = per_cycle(cpu_ns) / 1000.0;
            report.spread(subject, &format!("{title}: {whose} CPU per cycle"), "µs", [cpu_us]);
        }
        let switches = per_cycle(self.driver.switches + self.clients.switches);
        report.spread(
            subject,
            &format!("{title}: context switches per cycle"),
            "switches",
            [switches],
        );
        self.report_lost(title, subject, report);
    }

    /// Adds the row of how long the clients take.
    pub fn report_whole(&self, title: &str, subject: &Subject, report: &mut Report) {
        let whole = self.cycles.iter().map(|cycle| us(first_to_last_ns(cycle)));
        report.spread(subject, &format!("{title}: first entry to last exit"), "µs", whole);
    }

    /// Adds the row of the cycles that were not whole.
    pub fn report_lost(&self, title: &str, subject: &Subject, report: &mut Report) {
        let incomplete = self.begun_cycles.saturating_sub(self.cycles.len());
        report.total(
            subject,
            &format!("{title}: cycles not run by all"),
            "cycles",
            incomplete as u64,
        );
    }
}

fn difference(after: Usage, before: Usage) -> Usage {
    Usage {
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        switches: after.switches.saturating_sub(before.switches),
    }
}

/// From the exit of each client to the entry of its follower. A negative value would be a follower
/// that did not wait.
fn hops_ns(cycle: &[Record]) -> Vec<i64> {
    cycle.windows(2).map(|two| two[1].entry_ns as i64 - two[0].exit_ns as i64).collect()
}

/// From the last exit of all the others to the entry of the last client.
fn last_hop_ns(cycle: &[Record]) -> i64 {
    let Some((reader, sources)) = cycle.split_last() else { return 0 };
    let exit_ns = sources.iter().map(|record| record.exit_ns).max().unwrap_or(0);
    reader.entry_ns as i64 - exit_ns as i64
}

/// From the last exit of all the others to the exit of the last client: the mixes of its inputs are
/// included, whether they were made before its callback or in it.
fn mixed_ns(cycle: &[Record]) -> i64 {
    let own_ns = cycle.last().map_or(0, |reader| reader.exit_ns as i64 - reader.entry_ns as i64);
    last_hop_ns(cycle) + own_ns
}

/// From the first client's exit to the first entry among all the others.
fn first_hop_ns(cycle: &[Record]) -> i64 {
    let Some((source, followers)) = cycle.split_first() else { return 0 };
    let entry_ns = followers.iter().map(|record| record.entry_ns).min().unwrap_or(0);
    entry_ns as i64 - source.exit_ns as i64
}

/// From the first client's exit to the last exit of all the others.
fn split_ns(cycle: &[Record]) -> i64 {
    let Some((source, followers)) = cycle.split_first() else { return 0 };
    let exit_ns = followers.iter().map(|record| record.exit_ns).max().unwrap_or(0);
    exit_ns as i64 - source.exit_ns as i64
}

fn first_to_last_ns(cycle: &[Record]) -> u64 {
    let first = cycle.iter().map(|record| record.entry_ns).min().unwrap_or(0);
    let last = cycle.iter().map(|record| record.exit_ns).max().unwrap_or(0);
    last - first
}

/// How far the first entries of two cycles are from the time that lies between their first frames.
/// Without a timestamp from the driver itself, this is the closest measure of its regularity.
fn off_period_ns(cycle: &[Record], next: &[Record]) -> u64 {
    let first = |cycle: &[Record]| cycle.iter().map(|record| record.entry_ns).min().unwrap_or(0);
    let apart_ns = first(next) as i64 - first(cycle) as i64;
    let frames = next[0].frame.wrapping_sub(cycle[0].frame);
    let expected_ns = i64::from(frames) * 1_000_000_000 / i64::from(RATE_HZ);
    (apart_ns - expected_ns).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(frame: u32, times: &[(u64, u64)]) -> Vec<Record> {
        times
            .iter()
            .map(|&(entry_ns, exit_ns)| Record { entry_ns, exit_ns, frame, heard: 0 })
            .collect()
    }

    #[test]
    fn a_hop_is_from_an_exit_to_the_next_entry() {
        let chain = cycle(64, &[(100, 110), (125, 130), (170, 190)]);
        assert_eq!(hops_ns(&chain), [15, 40]);
        assert_eq!(first_to_last_ns(&chain), 90);
        let mix = cycle(64, &[(100, 190), (125, 130), (200, 215)]);
        assert_eq!((last_hop_ns(&mix), mixed_ns(&mix)), (10, 25));
        let split = cycle(64, &[(100, 110), (140, 150), (130, 160), (145, 155)]);
        assert_eq!((first_hop_ns(&split), split_ns(&split)), (20, 50));
    }

    #[test]
    fn first_to_last_follows_the_clock_in_any_order() {
        assert_eq!(first_to_last_ns(&cycle(64, &[(120, 160), (100, 110), (130, 140)])), 60);
    }

    #[test]
    fn missing_cycles_are_no_irregularity() {
        let first = cycle(64, &[(1_000_000, 1_000_001)]);
        let third = cycle(192, &[(1_000_000 + 2 * PERIOD_NS + 5, 9_000_000)]);
        assert!(
            off_period_ns(&first, &third).abs_diff(5) <= 1,
            "the period is no whole number of nanoseconds"
        );
    }
}
