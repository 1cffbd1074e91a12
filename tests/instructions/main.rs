//! What a cycle costs, counted in instructions: growth that no stopwatch on a shared machine would
//! show.
//!
//! The figures are of the build that tests run, which is not optimised: they show whether a cycle
//! has grown, not how long it takes.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use harness::{Counts, Program, Server, in_three_attempts};
use proto::status::Status;
use tempfile::TempDir;

/// Cycles to count over, at least: the cost of the start is spread over them.
const CYCLES: u64 = 1000;
/// The same for a server, whose threads take turns of some 10 ms under valgrind: what it does in a
/// cycle of a timer does not depend on the cycle's length.
const LONG_CYCLES: u64 = 250;
const LONG_QUANTUM: [&str; 4] = ["--driver", "timer", "--quantum", "4096"];
/// One cycle in this number may be missed, at most.
const MISSED: u64 = 20;
/// What a client prints that waited for the server in vain.
const GAVE_UP: &str = "the server did not answer";
/// How long these may take.
const LONGEST: Duration = Duration::from_secs(60);
/// Cycles long enough for a server or client that valgrind slows down, of a timer that plays
/// nothing: the conversions of a device have figures of their own.
const QUANTUM: [&str; 4] = ["--driver", "timer", "--quantum", "512"];

/// What the server's driver thread calls once for each cycle.
const CYCLE: &str = "CycleThread::cycle";

// Limits, a fifth above what was counted when they were set; a change that raises one says what it
// buys.

/// A client's part of a cycle, with one input from one source and one output: from the wake to the
/// next sleep, without the program's callback.
const CLIENT: u64 = 20_000;
/// A cycle of a server besides what its clients cost, and the increase with each client in a row.
const SERVER: u64 = 14_000;
const SERVER_PER_CLIENT: u64 = 4_600;

/// Runs the command under valgrind, which counts the instructions of these functions and of what
/// they call.
fn counting(command: &mut Command, functions: &[&str], report: &Path) {
    let mut outer = Command::new("valgrind");
    // Threads take turns: otherwise the one that computes most keeps the cycles waiting.
    outer
        .args(["--tool=callgrind", "--fair-sched=yes"])
        .arg(format!("--callgrind-out-file={}", report.display()));
    outer.args(functions.iter().map(|function| format!("--toggle-collect={function}")));
    outer.arg(command.get_program()).args(command.get_args());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(command.get_current_dir().expect("set"));
    *command = outer;
}

/// The count in a report that is complete.
fn counted(report: &Path) -> u64 {
    let text = std::fs::read_to_string(report).expect("valgrind has written its report");
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("a total");
    total.trim().parse().expect("a number")
}

/// How often a function was called, in a report that is complete.
fn calls(report: &Path, function: &str) -> u64 {
    let text = std::fs::read_to_string(report).expect("valgrind has written its report");
    // "fn=(7) name", or "cfn=(7) name" before a line "calls=9 0"; the name stands there once.
    let lines: Vec<&str> = text.lines().collect();
    let functions =
        lines.iter().filter_map(|line| line.strip_prefix('c').unwrap_or(line).strip_prefix("fn="));
    let id = functions
        .filter_map(|named| named.split_once(' '))
        .find(|(_, name)| name.ends_with(function));
    let called = format!("cfn={}", id.expect("it was called").0);
    let of_it = lines.windows(2).filter(|pair| pair[0].split(' ').next() == Some(&called));
    let counts = of_it.filter_map(|pair| pair[1].strip_prefix("calls=")?.split(' ').next());
    counts.map(|count| count.parse::<u64>().expect("a number")).sum()
}

/// Instructions of one cycle of a server whose clients stand in a row.
///
/// # Errors
/// The machine was too slow: what a missed cycle costs would be counted as well.
fn of_server(clients: usize) -> Result<u64, String> {
    let reports = TempDir::new().expect("a temporary directory");
    let report = reports.path().join("server");
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let under = |command: &mut Command| counting(command, &[&format!("*{CYCLE}")], &report);
    let mut server = Server::start_with(directory, &LONG_QUANTUM, under);
    let mut programs = Vec::new();
    let mut heard = "system:capture_1".to_owned();
    for number in 0..clients {
        let name = format!("client{number}");
        programs.push(probe_patiently(&server, &["thru", &name, "--from", &heard])?);
        heard = format!("{name}:out");
    }
    // Cycles that ran before all clients were there do not count.
    zero(server.program().id());
    let before = status_after(&server, 0)?;
    let after = status_after(&server, before.cycles + LONG_CYCLES)?;
    server.into_program().terminate().expect_success();
    let (cycles, xruns) = (after.cycles - before.cycles, after.xruns - before.xruns);
    if u64::from(xruns) > cycles / MISSED {
        return Err(format!("{xruns} xruns in {cycles} cycles"));
    }
    // Until the server's end, which takes a while, there were more of them.
    Ok(counted(&report) / calls(&report, CYCLE))
}

/// Starts a probe of a server under valgrind, which on a loaded machine may answer later than a
/// client waits: a probe that gave up is started again.
///
/// # Errors
/// The machine was too slow.
fn probe_patiently(server: &Server, arguments: &[&str]) -> Result<Program, String> {
    let end = Instant::now() + LONGEST;
    loop {
        match server.probe_in_time(arguments) {
            Err(failure) if failure.contains(GAVE_UP) && Instant::now() < end => {}
            answer => return answer,
        }
    }
}

/// Has valgrind count in this process from now on.
fn zero(process: u32) {
    let mut command = Command::new("callgrind_control");
    command.arg("--zero").arg(process.to_string());
    let output = command.output().expect("callgrind_control runs");
    assert!(output.status.success(), "{output:?}");
}

/// Returns the status of a server under valgrind once it has run this many cycles.
///
/// # Errors
/// The machine was too slow.
fn status_after(server: &Server, cycles: u64) -> Result<Status, String> {
    let end = Instant::now() + LONGEST;
    loop {
        // Rarely asked: valgrind runs one thread at a time, and an answer keeps cycles waiting.
        match server.status_in_time() {
            Ok(status) if status.cycles >= cycles => return Ok(status),
            _ if Instant::now() < end => std::thread::sleep(Duration::from_secs(1)),
            Ok(status) => return Err(format!("{} cycles of {cycles}", status.cycles)),
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[test]
fn a_cycle_of_the_server_costs_no_more_than_it_did() {
    // A server without an active client runs no cycles.
    let [one, four] = [1, 4].map(|clients| in_three_attempts(|| of_server(clients)));
    let per_client = four.saturating_sub(one) / 3;
    let alone = one.saturating_sub(per_client);
    println!("{alone} instructions, and {per_client} for each client");
    assert!(alone <= SERVER, "{alone} instructions in a cycle besides its clients");
    assert!(per_client <= SERVER_PER_CLIENT, "{per_client} more instructions for each client");
}

#[test]
fn a_clients_part_of_a_cycle_costs_no_more_than_it_did() {
    let reports = TempDir::new().expect("a temporary directory");
    let report = reports.path().join("client");
    let server = Server::start(&QUANTUM);
    let _source = server.probe(&["source", "source"]);
    let functions = ["*Runner::wait", "*Runner::finish"];
    let under = |command: &mut Command| counting(command, &functions, &report);
    let checker = server.probe_with(&["check", "checker", "--from", "source:out"], under);
    server.await_cycles(CYCLES);
    let cycles = Counts::of(checker).cycles;
    assert!(cycles > CYCLES / 2, "it ran {cycles} cycles only");
    let each = counted(&report) / cycles;
    println!("{each} instructions");
    assert!(each <= CLIENT, "{each} instructions of a client in a cycle");
}
