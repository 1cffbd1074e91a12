//! How long a new client takes to become part of the graph.

use anyhow::Result;

use crate::measure::stream::Stream;
use crate::measure::{Bench, subject, us, words};
use crate::server::{Server, Settings};

pub fn run(bench: Bench) -> Result<()> {
    let Bench { candidate, programs, workplace, arguments, report, .. } = bench;
    let (server, mut patcher) =
        Server::start(candidate, programs, workplace, &Settings::new(arguments.sync))?;
    let mut stream = Stream::start(&server, &mut patcher)?;
    let subject = subject(&server, stream.checker())?;

    let span = stream.begin()?;
    for _ in 0..arguments.opens_per_round() {
        // A process each: that is how programs start.
        let node = server.node("opened", &words("tone 1 1"))?;
        let start = node.ready()?;
        let whole_ns = start.open_ns + start.ports_ns + start.activate_ns;
        report.spread(&subject, "open + 2 ports + activate", "µs", [us(whole_ns)]);
        report.spread(&subject, "  jack_client_open", "µs", [us(start.open_ns)]);
        report.spread(&subject, "  jack_port_register × 2", "µs", [us(start.ports_ns)]);
        report.spread(&subject, "  jack_activate", "µs", [us(start.activate_ns)]);
        report.spread(&subject, "deactivate + close", "µs", [us(node.close()?)]);
    }
    stream.end(&span, "opens", &subject, report)?;

    stream.stop()?;
    patcher.close()?;
    server.stop()
}
