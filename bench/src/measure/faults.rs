//! How long a new client takes to become part of the graph, with a connection, while another one
//! does as it should not.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::client::Patcher;
use crate::measure::{Bench, subject, us, words};
use crate::server::{Server, Settings};

/// The kinds of `node.c` that are faulty, and what the figures call them. The first is none, for
/// comparison.
const FAULTS: [(&str, &str); 4] = [
    ("tone", "no fault"),
    ("hang", "one hangs"),
    ("stop", "one is stopped"),
    ("flood", "one floods the server"),
];
/// A newcomer that is not in the graph by then was kept out by the fault.
const LIMIT: Duration = Duration::from_secs(10);

pub fn run(bench: Bench) -> Result<()> {
    let Bench { candidate, programs, workplace, arguments, report, .. } = bench;
    for (kind, title) in FAULTS {
        // A server for each fault: what one leaves behind is not measured with the next.
        let settings = Settings::new(arguments.sync);
        let (server, mut patcher) = Server::start(candidate, programs, workplace, &settings)?;
        let source = server.node("source", &words("source 0 1"))?;
        source.ready()?;
        let mut faulty = server.node("faulty", &words(&format!("{kind} 1 1")))?;
        faulty.ready()?;
        patcher.connect("source:out_0", "faulty:in_0")?;
        let subject = subject(&server, &source)?;
        faulty.trigger_fault()?;
        for number in 0..arguments.opens_per_round() {
            match join(&server, &mut patcher, number) {
                Ok(joined_ns) => {
                    let measure = format!("open + 2 ports + activate + connect, {title}");
                    report.spread(&subject, &measure, "µs", [us(joined_ns)]);
                }
                // What a fault does to newcomers is a result, not a failure of the measurement.
                Err(error) => {
                    eprintln!(
                        "{}: {title}: newcomer {number} was kept out: {error:#}",
                        candidate.name
                    );
                    report.total(&subject, &format!("newcomers kept out, {title}"), "clients", 1);
                    break;
                }
            }
        }
        // The leash ends the server, which may no longer respond after the fault.
    }
    Ok(())
}

/// One newcomer, from its call to open to the end of the call that connects it.
fn join(server: &Server, patcher: &mut Patcher, number: u32) -> Result<u64> {
    let name = format!("new{number}");
    let node = server.node(&name, &words("tone 1 1"))?;
    let start = node.ready_by(Instant::now() + LIMIT)?;
    let request = patcher.connect("source:out_0", &format!("{name}:in_0"))?;
    node.close_by(Instant::now() + LIMIT)?;
    Ok(start.open_ns
        + start.ports_ns
        + start.activate_ns
        + (request.returned_ns - request.called_ns))
}
