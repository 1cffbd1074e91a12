//! A graph with a victim in its middle, and checkers that count what each part of it lost.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use harness::{Counts, Program, Server};
use rustix::process::Signal;

/// `source → victim → fed`, and `source → bystander`, which does not depend on the victim.
pub(crate) struct Scenario {
    pub(crate) server: Server,
    _source: Program,
    pub(crate) victim: Program,
    bystander: Program,
    fed: Program,
    _alone: MutexGuard<'static, ()>,
}

/// One scenario at a time: a fault of one would disturb the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Waits until no other test has a scenario.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scenario {
    /// Starts the scenario. When this returns, every checker hears its source.
    pub(crate) fn new(options: &[&str], fault: &str) -> Self {
        let alone = alone();
        let server = Server::start(options);
        let source = server.probe(&["source", "source"]);
        let victim = server.probe(&["thru", "victim", "--from", "source:out", "--fault", fault]);
        let bystander = server.probe(&["check", "bystander", "--from", "source:out"]);
        let fed = server.probe(&["check", "fed", "--from", "victim:out"]);
        let mut scenario = Self { server, _source: source, victim, bystander, fed, _alone: alone };
        scenario.await_cycles(100);
        scenario
    }

    /// Lets the server run this many cycles.
    pub(crate) fn await_cycles(&mut self, cycles: u64) {
        self.server.await_cycles(cycles);
    }

    /// Triggers the fault, inside the victim's process callback or on another of its threads.
    pub(crate) fn trigger_fault(&self) {
        self.victim.signal(Signal::USR1);
    }

    /// Whether the server has left the victim out of its plans.
    pub(crate) fn is_bypassed(&self) -> bool {
        self.server.client("victim").is_some_and(|victim| victim.bypassed)
    }

    /// Whether the victim is still a client.
    pub(crate) fn has_victim(&self) -> bool {
        self.server.client("victim").is_some()
    }

    /// A new client opens and connects.
    pub(crate) fn expect_new_clients_to_work(&self) {
        let newcomer = self.server.probe(&["check", "newcomer", "--from", "source:out"]);
        drop(newcomer);
    }

    /// Ends the checkers. Returns the counts of the client `bystander`, which does not hear the
    /// victim, and of the client `fed`, which does.
    pub(crate) fn counts(self) -> (Counts, Counts) {
        (Counts::of(self.bystander), Counts::of(self.fed))
    }
}

/// Repeats a fault until the survivors pass. A survivor's losses count only if the same scenario
/// without a fault, right afterwards and for as long, loses no more than its share: a busy machine
/// takes more from all clients. It may be busy at most twice.
///
/// # Panics
/// If it failed three times on a machine that was not busy.
pub(crate) fn retry_unless_machine_is_busy(
    mode: &[&str],
    mut fault: impl FnMut() -> Result<(), String>,
) {
    let (mut failures, mut unjudged) = (Vec::new(), 0);
    while unjudged < 2 {
        let begun = Instant::now();
        let Err(lost) = fault() else { return };
        match without_fault(mode, begun.elapsed()) {
            Ok(()) => failures.push(lost),
            Err(busy) => {
                unjudged += 1;
                eprintln!("not judged, since the machine is busy: {lost}; {busy}");
            }
        }
        assert!(failures.len() < 3, "failed on a machine that was not busy: {failures:?}");
    }
}

/// Checks what the machine takes by itself, without a fault.
fn without_fault(mode: &[&str], time: Duration) -> Result<(), String> {
    let end = Instant::now() + time;
    let mut scenario = Scenario::new(mode, "none");
    scenario.await_cycles(400);
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    let (bystander, fed) = scenario.counts();
    expect_undisturbed("without a fault", bystander)?;
    expect_right("without a fault", fed)?;
    expect_machine_losses("without a fault", fed.silent + fed.missed, fed)
}

/// Checks that a survivor lost (`losses`, of its `counts`) no more than a quiet machine takes: it
/// is shared, and stops for whole cycles at times.
pub(crate) fn expect_machine_losses(what: &str, losses: u64, counts: Counts) -> Result<(), String> {
    let is_machines = counts.cycles > 0 && losses <= counts.cycles / 100 + 2;
    if is_machines { Ok(()) } else { Err(format!("{what}: {losses} lost of {counts:?}")) }
}

/// Checks that a survivor heard no wrong sample. On a busy machine it may: a client that is late
/// reads what its source writes for the next cycle.
pub(crate) fn expect_right(what: &str, counts: Counts) -> Result<(), String> {
    if counts.wrong == 0 { Ok(()) } else { Err(format!("{what}: wrong samples: {counts:?}")) }
}

/// Checks a client that does not hear the victim: it loses only what the machine takes.
pub(crate) fn expect_undisturbed(what: &str, bystander: Counts) -> Result<(), String> {
    expect_right(what, bystander)?;
    expect_machine_losses(what, bystander.silent + bystander.missed, bystander)
}
