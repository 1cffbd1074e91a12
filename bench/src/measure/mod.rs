//! The measurements, one module each.

mod connect;
mod desktop;
mod faults;
mod floor;
mod graph;
mod many;
mod open;
mod placement;
mod stream;

use std::fmt;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::arguments::Arguments;
use crate::child::LineChild;
use crate::client::Node;
use crate::machine::Machine;
use crate::measure::graph::GRAPHS;
use crate::proc;
use crate::programs::Programs;
use crate::report::{Report, Subject};
use crate::server::{Candidate, Server};
use crate::workplace::Workplace;

pub use crate::measure::desktop::system::System;

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Part {
    /// Opening clients next to a running stream
    Open,
    /// Connecting among 50 clients, and the server's memory with them
    Connect,
    /// Opening and connecting clients while another one hangs, is stopped, or floods the server
    Faults,
    /// 250 clients with 4,000 ports
    Many,
    /// Chains and fans of clients without work, and their futex floors
    Graph,
    /// Graphs of clients with work, placed by the server and left to the kernel
    Placement,
    /// Players on consort, PulseAudio and PipeWire; only where it is named
    Desktop,
}

impl Part {
    /// Those about libjack.so.0, in the order in which they are measured.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Connect, Self::Faults, Self::Many, Self::Graph, Self::Placement];
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Open => "open",
            Self::Connect => "connect",
            Self::Faults => "faults",
            Self::Many => "many",
            Self::Graph => "graph",
            Self::Placement => "placement",
            Self::Desktop => "desktop",
        })
    }
}

/// What every measurement of one server has at hand.
struct Bench<'a> {
    candidate: &'a Candidate,
    /// The others are compared with it.
    is_first: bool,
    programs: &'a Programs,
    workplace: &'a Workplace,
    arguments: &'a Arguments,
    report: &'a mut Report,
}

/// Measures one part of every server, each started for it, and of the floors where there are any.
///
/// # Errors
/// A floor cannot be measured. What a server cannot do is noted in the report.
pub fn run(
    part: Part,
    round: u32,
    candidates: &[Candidate],
    programs: &Programs,
    workplace: &Workplace,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<()> {
    let of_each = |what: &str, report: &mut Report, measure: &dyn Fn(Bench) -> Result<()>| {
        for (place, candidate) in candidates.iter().enumerate() {
            eprintln!("round {round}: {what} of {}", candidate.name);
            let is_first = place == 0;
            let bench = Bench { candidate, is_first, programs, workplace, arguments, report };
            if let Err(error) = measure(bench) {
                report.fail(&candidate.name, format!("{what}: {error:#}"));
            }
        }
    };
    let measure = match part {
        Part::Open => open::run,
        Part::Connect => connect::run,
        Part::Faults => faults::run,
        Part::Many => many::run,
        Part::Placement => placement::run,
        Part::Desktop => {
            return desktop::run(round, candidates, programs, workplace, arguments, report);
        }
        // Graph by graph, so that seconds lie between a server, its rivals and the floor, and not
        // minutes.
        Part::Graph => {
            let _cache_load = arguments.cold_caches.then(|| take_caches(programs)).transpose()?;
            for graph in GRAPHS {
                let title = graph::title(graph, arguments);
                if !arguments.has_graph(&title) {
                    continue;
                }
                of_each(&title, report, &|bench| graph::run(bench, graph));
                if graph.has_floor() && !arguments.no_floors {
                    eprintln!("round {round}: floors of {title}");
                    floor::run(graph, programs, workplace, arguments, report).context("floors")?;
                }
            }
            return Ok(());
        }
    };
    of_each(&part.to_string(), report, &measure);
    Ok(())
}

/// The subject of a row: this server with these threads. `node` is active and has run.
fn subject(server: &Server, node: &Node) -> Result<Subject> {
    Ok(Subject {
        server: server.candidate.name.clone(),
        version: server.candidate.version.clone(),
        command: server.command_line.clone(),
        server_threads: proc::scheduling(server.pid)?,
        client_threads: proc::scheduling(node.pid())?,
    })
}

/// Goes through memory on every CPU until it is dropped.
fn take_caches(programs: &Programs) -> Result<LineChild> {
    let child = LineChild::spawn("load", Command::new(&programs.load).args(["memory", "0"]))?;
    child.answer("loads")?;
    Ok(child)
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// The same for the rows of a floor, which has no server.
fn floor_subject(machine: &Machine, threads: String) -> Subject {
    let kernel = machine.kernel.split(' ').next().unwrap_or_default();
    Subject {
        server: String::from("floor"),
        version: kernel.to_owned(),
        command: String::from("processes and futexes only (bench/clients/floor.c)"),
        server_threads: threads.clone(),
        client_threads: threads,
    }
}
