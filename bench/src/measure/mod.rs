//! The measurements, one module each.

mod connect;
mod faults;
pub mod floor;
mod graph;
mod many;
mod open;
mod placement;
mod stream;

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;

use crate::arguments::Arguments;
use crate::client::Node;
use crate::machine::Machine;
use crate::proc;
use crate::programs::Programs;
use crate::report::{Report, Subject};
use crate::server::{Candidate, Server};
use crate::workplace::Workplace;

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Part {
    /// Opening clients beside a running stream
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
}

impl Part {
    /// All of them, in the order in which they are measured.
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
        })
    }
}

/// What every measurement of one server has at hand.
struct Bench<'a> {
    candidate: &'a Candidate,
    programs: &'a Programs,
    workplace: &'a Workplace,
    arguments: &'a Arguments,
    report: &'a mut Report,
}

/// Measures one part of one server, with a server started for it.
pub fn run(
    part: Part,
    candidate: &Candidate,
    programs: &Programs,
    workplace: &Workplace,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<()> {
    let bench = Bench { candidate, programs, workplace, arguments, report };
    match part {
        Part::Open => open::run(bench),
        Part::Connect => connect::run(bench),
        Part::Faults => faults::run(bench),
        Part::Many => many::run(bench),
        Part::Graph => graph::run(bench),
        Part::Placement => placement::run(bench),
    }
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
