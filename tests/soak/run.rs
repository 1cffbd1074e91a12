//! One soak: the graph, the time, and the verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use harness::{Counts, Loss, MachineWatch, Program, Server, Stall, foreign_realtime, not_run};

use crate::actions::Crowd;

/// The options of a soak.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) length: Duration,
    pub(crate) quantum: u32,
    pub(crate) sync: bool,
    /// For how long the same stream is watched without faults afterwards.
    pub(crate) control: Duration,
}

/// Cycles whose samples the monitor did not get as they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lost {
    /// Lost while a thread above all of the server's and the clients' did not get its CPU either.
    pub(crate) machines: u64,
    /// All other losses.
    pub(crate) servers: u64,
}

/// A CPU that is taken for this fraction of a cycle may cost the cycle.
const STALL_DIVISOR: u32 = 4;
const RATE_HZ: u32 = 48_000;
const SURVIVORS: [&str; 3] = ["first", "second", "last"];

/// `source → first → second → last → monitor`.
struct Stream {
    _programs: Vec<Program>,
    monitor: Program,
}

impl Stream {
    fn start(server: &Server) -> Self {
        let mut programs = vec![server.probe(&["source", "source"])];
        let mut heard = "source:out".to_owned();
        for name in SURVIVORS {
            programs.push(server.probe(&["thru", name, "--from", &heard]));
            heard = format!("{name}:out");
        }
        let monitor = server.probe(&["monitor", "monitor", "--from", &heard]);
        Self { _programs: programs, monitor }
    }

    fn losses(&mut self) -> Vec<Loss> {
        Loss::all_of(self.monitor.stdout())
    }
}

impl Lost {
    fn of(losses: &[Loss], stalls: &[Stall], period_ns: u64) -> Self {
        let mut lost = Self::default();
        for loss in losses {
            let cause = if loss.is_machines(stalls, period_ns) {
                &mut lost.machines
            } else {
                &mut lost.servers
            };
            *cause += loss.cycles;
        }
        lost
    }
}

fn now_ns() -> u64 {
    sys::clock::now_ns()
}

/// Runs one soak and prints what happened.
pub(crate) fn soak(plan: &Plan) -> Lost {
    run(plan).lost
}

/// Makes up to three attempts, as the tests of single faults do: a chance that is not the machine's
/// does not strike every time. What cannot be judged is reported as not run.
///
/// # Panics
/// If the stream lost something in three attempts that nothing but the server and its clients can
/// have taken.
pub(crate) fn execute(plan: &Plan) {
    let mut failures = Vec::new();
    let mut foreign = BTreeSet::new();
    for attempt in 0..3 {
        let outcome = run(&Plan { seed: plan.seed + attempt, ..plan.clone() });
        if !outcome.is_judged {
            return not_run(
                "no real-time priority here, so a loss cannot be told from a busy machine",
            );
        }
        match outcome {
            Outcome { lost: Lost { servers: 0, .. }, .. } => return,
            Outcome { lost, foreign: none, .. } if none.is_empty() => failures.push(lost),
            Outcome { foreign: found, .. } => foreign.extend(found),
        }
    }
    assert!(failures.len() < 3, "lost in three soaks, not to the machine: {failures:?}");
    let names: Vec<String> = foreign.into_iter().collect();
    not_run(&format!("other programs had real-time threads: {}", names.join(", ")));
}

/// What a soak has shown.
struct Outcome {
    lost: Lost,
    /// Whether losses could be told from those that the machine takes.
    is_judged: bool,
    /// Other programs that had real-time threads.
    foreign: BTreeSet<String>,
}

fn run(plan: &Plan) -> Outcome {
    let Plan { seed, length, quantum, sync, control: watched } = plan;
    let period_ns = u64::from(*quantum) * 1_000_000_000 / u64::from(RATE_HZ);
    let mode = if *sync { "sync" } else { "async" };
    println!("soak: seed {seed}, {} s, {quantum} frames, {mode}", length.as_secs());
    let quantum = quantum.to_string();
    let mut options = vec!["--quantum", &quantum];
    options.extend(sync.then_some("--sync"));
    let mut server = Server::start(&options);
    let reference = MachineWatch::start(period_ns / u64::from(STALL_DIVISOR));
    let mut stream = Stream::start(&server);
    let mut xruns = server.spawn_consort(&["xruns", "--follow", "--json"]);
    let mut crowd = Crowd::new(*seed);
    let mut foreign = BTreeSet::new();
    let begun = (Instant::now(), now_ns());
    while begun.0.elapsed() < *length {
        let wait_ms = crowd.act(&server);
        std::thread::sleep(Duration::from_millis(wait_ms));
        foreign.extend(foreign_realtime());
        assert!(
            server.program().is_running(),
            "the server has died: {}",
            server.program().stderr()
        );
        assert!(stream.monitor.is_running(), "the monitor has died: {}", stream.monitor.stderr());
    }
    let ended_ns = now_ns();
    crowd.leave();
    // The last of the clients' ends do not belong to the quiet time.
    std::thread::sleep(Duration::from_secs(1));
    let quiet_ns = now_ns();
    std::thread::sleep(*watched);
    let (losses, stalls) = (stream.losses(), reference.stalls());
    let causes = causes(xruns.stdout());
    let is_judged = reference.is_realtime;
    let counts = Counts::of(stream.monitor);
    let (with, without): (Vec<Loss>, Vec<Loss>) =
        losses.into_iter().partition(|loss| loss.time_ns < quiet_ns);
    let during = |from_ns, until_ns| {
        stalls.iter().filter(|stall| stall.until_ns >= from_ns && stall.from_ns < until_ns).count()
    };
    let lost = Lost::of(&with, &stalls, period_ns);
    let control = Lost::of(&without, &stalls, period_ns);
    println!("actions:");
    for (what, count) in &crowd.counts() {
        println!("  {count:>7}  {what}");
    }
    println!("xruns of survivors, by cause:");
    for (what, count) in &causes {
        println!("  {count:>7}  {what}");
    }
    println!("monitor: {counts:?}");
    assert!(counts.good > 0, "the monitor has heard nothing");
    let mut before_ns = 0;
    for loss in with.iter().filter(|loss| !loss.is_machines(&stalls, period_ns)) {
        let after_s = loss.time_ns.saturating_sub(begun.1) as f64 / 1e9;
        // Those that follow each other have one cause.
        let is_next = loss.time_ns < before_ns + 2 * period_ns;
        let done = if is_next { Vec::new() } else { crowd.done_before(loss.time_ns) };
        println!("  lost after {after_s:.3} s: {} {}  {}", loss.cycles, loss.kind, done.join(", "));
        before_ns = loss.time_ns;
    }
    println!(
        "lost with faults: {} cycles by the server, {} in {} stalls of the machine",
        lost.servers,
        lost.machines,
        during(begun.1, ended_ns)
    );
    if !watched.is_zero() {
        println!(
            "lost without, in {} s: {} cycles by the server, {} in {} stalls of the machine",
            watched.as_secs(),
            control.servers,
            control.machines,
            during(quiet_ns, u64::MAX)
        );
    }
    if !foreign.is_empty() {
        let names: Vec<&str> = foreign.iter().map(String::as_str).collect();
        println!(
            "other programs had real-time threads, and what they took counts: {}",
            names.join(", ")
        );
    }
    if !is_judged {
        println!(
            "stalls cannot be distinguished from a busy machine: SCHED_FIFO is not allowed here"
        );
    }
    Outcome { lost, is_judged, foreign }
}

/// Verdicts on the driver and on the clients of the stream, counted.
fn causes(followed: &str) -> BTreeMap<String, u64> {
    let mut causes = BTreeMap::new();
    for line in followed.lines() {
        let Ok(xrun) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let who = xrun["client"].as_str().unwrap_or("driver");
        if who.starts_with("victim") {
            continue;
        }
        let verdict = xrun["verdict"].as_str().unwrap_or("unknown");
        *causes.entry(format!("{who}: {verdict}")).or_default() += 1;
    }
    causes
}
