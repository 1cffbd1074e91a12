//! Graphs of clients with work, placed by the server and left to the kernel: the placed ones must
//! never finish later.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::arguments::Kind;
use crate::child::LineChild;
use crate::client::Node;
use crate::measure::graph::{self, Window};
use crate::measure::{Bench, subject};
use crate::recording::Recording;
use crate::server::{PERIOD_NS, Server, Settings};

/// Longer than the server takes to check the placement, which it does once a second.
const SETTLE: Duration = Duration::from_millis(1500);
/// Above that of drivers and clients.
const LOAD_PRIORITY: u32 = 20;

/// Which client waits for which.
struct Shape {
    name: &'static str,
    clients: usize,
    edges: &'static [(usize, usize)],
}

const SHAPES: [Shape; 5] = [
    Shape { name: "chain of 5", clients: 5, edges: &[(0, 1), (1, 2), (2, 3), (3, 4)] },
    Shape { name: "5 in parallel", clients: 5, edges: &[] },
    Shape {
        name: "diamond of 5",
        clients: 5,
        edges: &[(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)],
    },
    // Drawn by lot once, an edge of each three.
    Shape {
        name: "8 at random",
        clients: 8,
        edges: &[(0, 2), (0, 5), (1, 3), (1, 4), (2, 6), (3, 5), (3, 7), (4, 6), (5, 7)],
    },
    // Drawn by lot once: each client but the first three has one or two predecessors.
    Shape {
        name: "16 at random",
        clients: 16,
        edges: &[
            (0, 6),
            (1, 3),
            (1, 5),
            (2, 4),
            (3, 8),
            (3, 9),
            (4, 8),
            (4, 9),
            (6, 7),
            (6, 10),
            (7, 13),
            (9, 13),
            (9, 15),
            (10, 11),
            (11, 12),
            (12, 14),
        ],
    },
];
/// What all clients take together, in hundredths of a cycle.
const WORK_PERCENT: [u64; 4] = [0, 20, 50, 80];
/// The total work with which the loads are tried.
const LOADED_PERCENT: u64 = 50;

/// Four clients of a fifth of a cycle each: on two CPUs, the optimum is known in advance.
const FIFTHS: Shape = Shape { name: "4 in parallel", clients: 4, edges: &[] };

/// Other load on the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Load {
    Nothing,
    RealTime,
    Interrupts,
}

impl Load {
    fn words(self) -> Option<[String; 2]> {
        match self {
            Self::Nothing => None,
            Self::RealTime => Some(["fifo".into(), LOAD_PRIORITY.to_string()]),
            Self::Interrupts => Some(["interrupts".into(), "0".into()]),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::RealTime => ", FIFO load",
            Self::Interrupts => ", interrupts",
        }
    }
}

/// Measures consort only: the others leave all clients to the kernel.
pub fn run(mut bench: Bench) -> Result<()> {
    if bench.candidate.kind != Kind::Consort {
        return Ok(());
    }
    for shape in &SHAPES {
        for percent in WORK_PERCENT {
            compare(&mut bench, shape, percent, Load::Nothing)?;
        }
        for load in [Load::RealTime, Load::Interrupts] {
            compare(&mut bench, shape, LOADED_PERCENT, load)?;
        }
    }
    compare(&mut bench, &FIFTHS, 80, Load::Nothing)
}

fn compare(bench: &mut Bench, shape: &Shape, percent: u64, load: Load) -> Result<()> {
    let title = format!("{}, {percent} % work{}", shape.name, load.title());
    if !bench.arguments.has_graph(&title) {
        return Ok(());
    }
    measure(bench, shape, percent, load, &title, true)?;
    // The kernel's choice is the same for every build.
    if bench.is_first { measure(bench, shape, percent, load, &title, false) } else { Ok(()) }
}

fn measure(
    bench: &mut Bench,
    shape: &Shape,
    percent: u64,
    load: Load,
    title: &str,
    placement: bool,
) -> Result<()> {
    let Bench { candidate, programs, workplace, arguments, ref mut report, .. } = *bench;
    let seconds = arguments.seconds;
    let settings = Settings { placement, ..Settings::new(arguments.sync) };
    let (server, mut patcher) = Server::start(candidate, programs, workplace, &settings)?;
    let recording = Recording::new(workplace, shape.clients, graph::capacity(seconds + 2))?;
    let work_ns = PERIOD_NS * percent / 100 / shape.clients as u64;
    let nodes = graph::spawn_nodes(&server, &recording, shape.clients, |_| (1, 1), work_ns)?;
    for (source, target) in shape.edges {
        patcher.connect(&format!("g{source}:out_0"), &format!("g{target}:in_0"))?;
    }
    let mut load_program = load
        .words()
        .map(|words| LineChild::spawn("load", Command::new(&programs.load).args(words)))
        .transpose()?;
    if let Some(load_program) = &load_program {
        load_program.answer("loads")?;
    }
    std::thread::sleep(SETTLE);
    let mut subject = subject(&server, &nodes[0])?;
    subject.server =
        format!("{}, {}", candidate.name, if placement { "placed" } else { "kernel's choice" });
    let pids: Vec<u32> = nodes.iter().map(Node::pid).collect();
    let window = Window::measure(&recording, 0..shape.clients, (server.pid, &pids), seconds)?;
    window.report_whole(title, &subject, report);
    // A graph that begins early is no later for that: from the driver on, too.
    graph::report_switches(title, (server.pid, &pids), PERIOD_NS, workplace, &subject, report)?;
    window.report_lost(title, &subject, report);
    if let Some(load_program) = &mut load_program {
        load_program.end();
    }
    for node in nodes {
        node.close()?;
    }
    patcher.close()?;
    server.stop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_an_acyclic_graph_of_its_clients() {
        for Shape { name, clients, edges } in SHAPES.iter().chain([&FIFTHS]) {
            assert!(edges.iter().all(|(from, to)| from < to && to < clients), "{name}");
        }
    }
}
