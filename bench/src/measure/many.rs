//! The number of clients and ports that a large session has.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::measure::{Bench, subject};
use crate::proc;
use crate::server::{Server, Settings};

/// At 64 frames, one context switch for each client would already be most of a cycle.
const QUANTUM_FRAMES: u32 = 1024;
/// How long all clients together may take to open, and to close. Clients that take longer
/// are counted as not opened, or not closed.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
const CLOSE_LIMIT: Duration = Duration::from_secs(60);
/// How long all callbacks have time to run at least once more: far above a cycle, even one that
/// fails.
const RUN_LIMIT: Duration = Duration::from_secs(20);

pub fn run(bench: Bench) -> Result<()> {
    let Bench { candidate, programs, workplace, arguments, report, .. } = bench;
    let ports = arguments.many_clients * arguments.many_ports;
    let settings =
        Settings { ports, quantum_frames: QUANTUM_FRAMES, ..Settings::new(arguments.sync) };
    let (server, patcher) = Server::start(candidate, programs, workplace, &settings)?;
    let (inputs, outputs) = (arguments.many_ports / 2, arguments.many_ports.div_ceil(2));
    let title = format!("{} clients, {ports} ports", arguments.many_clients);

    let begun = Instant::now();
    let mut nodes = Vec::new();
    for number in 0..arguments.many_clients {
        let arguments = ["tone".into(), inputs.to_string(), outputs.to_string()];
        let node = server.node(&format!("m{number}"), &arguments)?;
        // A server's limit is a result, not a failure of the measurement.
        if let Err(error) = node.ready_by(begun + OPEN_LIMIT) {
            eprintln!("{}: client {number} was not taken: {error:#}", candidate.name);
            break;
        }
        nodes.push(node);
    }
    ensure!(!nodes.is_empty(), "no client was taken");
    let subject = subject(&server, &nodes[0])?;
    let opened = begun.elapsed();
    report.spread(&subject, &format!("{title}: active at once"), "clients", [nodes.len() as f64]);
    report.spread(
        &subject,
        &format!("{title}: opened one after another"),
        "ms",
        [milliseconds(opened)],
    );

    let before = nodes.iter_mut().map(|node| node.counts()).collect::<Result<Vec<_>>>()?;
    let deadline = Instant::now() + RUN_LIMIT;
    let mut running = 0;
    while running < nodes.len() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_secs(1));
        let now = nodes.iter_mut().map(|node| node.counts()).collect::<Result<Vec<_>>>()?;
        running =
            now.iter().zip(&before).filter(|(now, before)| now.cycles > before.cycles).count();
    }
    report.spread(
        &subject,
        &format!("{title}: with running callbacks"),
        "clients",
        [running as f64],
    );
    report.spread(
        &subject,
        &format!("{title}: server PSS"),
        "KiB",
        [proc::pss_kib(server.pid)? as f64],
    );

    let begun = Instant::now();
    nodes.iter_mut().for_each(crate::client::Node::begin_to_close);
    let mut closed = 0u32;
    for node in nodes {
        closed += u32::from(node.close_by(begun + CLOSE_LIMIT).is_ok());
    }
    report.spread(&subject, &format!("{title}: closed in order"), "clients", [f64::from(closed)]);
    report.spread(
        &subject,
        &format!("{title}: all closed at once"),
        "ms",
        [milliseconds(begun.elapsed())],
    );
    // How the clients closed is the result; a server that hangs by now is ended all the same.
    drop((patcher, server));
    Ok(())
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
