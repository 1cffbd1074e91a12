//! A graph with a victim in its middle, and checkers that count what each part of it lost.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harness::{Heard, Judge, Program, Server, not_run};
use rustix::process::Signal;

/// `source → victim → fed`, and `source → bystander`, which does not depend on the victim. The
/// server plays what source and victim send.
pub(crate) struct Scenario {
    pub(crate) server: Server,
    _source: Program,
    pub(crate) victim: Program,
    bystander: Program,
    fed: Program,
    judge: Judge,
    /// Cycles that a fault may cost a client that has nothing to do with it.
    pub(crate) most_lost: u64,
    _alone: MutexGuard<'static, ()>,
}

/// What the survivors of a fault heard.
pub(crate) struct Survivors {
    /// Not connected with the victim.
    pub(crate) bystander: Heard,
    /// Hears the victim.
    pub(crate) fed: Heard,
}

/// One scenario at a time: a fault of one would disturb the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Waits until no other test has a scenario.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The quantum of a mode.
pub(crate) fn quantum(options: &[&str]) -> u32 {
    let mut words = options.iter().skip_while(|word| **word != "--quantum").skip(1);
    words.next().and_then(|frames| frames.parse().ok()).expect("a mode has a quantum")
}

impl Scenario {
    /// Sets the scenario up; everything sounds when this returns.
    pub(crate) fn new(options: &[&str], fault: &str) -> Self {
        let alone = alone();
        let server = Server::start(options);
        let source = server.probe(&["source", "source"]);
        let victim = server.probe(&["thru", "victim", "--from", "source:out", "--fault", fault]);
        for (output, port) in [("source:out", 1), ("victim:out", 2)] {
            let port = format!("system:playback_{port}");
            server.consort(&["connect", output, &port]).expect_success();
        }
        let judge = Judge::of_cycles(quantum(options)).expect("a judge was there before");
        let bystander = server.probe(&["monitor", "bystander", "--from", "source:out"]);
        let fed = server.probe(&["monitor", "fed", "--from", "victim:out"]);
        let most_lost = u64::from(options.contains(&"--sync"));
        let scenario = Self {
            server,
            _source: source,
            victim,
            bystander,
            fed,
            judge,
            most_lost,
            _alone: alone,
        };
        scenario.await_cycles(100);
        scenario
    }

    /// Lets the server run this many cycles.
    pub(crate) fn await_cycles(&self, cycles: u64) {
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

    /// Ends the monitors.
    pub(crate) fn survivors(self) -> Survivors {
        let Self { judge, bystander, fed, .. } = self;
        Survivors { bystander: judge.judge(bystander), fed: judge.judge(fed) }
    }

    /// Demands that the client that does not hear the victim lost no more than the mode allows.
    pub(crate) fn expect_bystander_undisturbed(self, what: &str) -> Result<Survivors, String> {
        let most_lost = self.most_lost;
        let survivors = self.survivors();
        survivors.bystander.expect(what, most_lost)?;
        Ok(survivors)
    }
}

/// Tries a fault beside a quiet server, as [`harness::judged`] says. Without a judge, the test
/// reports that it was not run.
pub(crate) fn judged(mode: &[&str], fault: impl FnMut() -> Result<(), String>) {
    if Judge::of_cycles(quantum(mode)).is_none() {
        return not_run("no real-time priority here, so a loss cannot be told from a busy machine");
    }
    harness::judged(&format!("{mode:?}"), fault, |length| {
        expect_quiet_to_lose_nothing(mode, length)
    });
}

/// Runs a scenario without its fault for a time.
fn expect_quiet_to_lose_nothing(mode: &[&str], length: Duration) -> Result<(), String> {
    let scenario = Scenario::new(mode, "none");
    std::thread::sleep(length);
    let most_lost = scenario.most_lost;
    let fed = scenario.expect_bystander_undisturbed("quiet")?.fed;
    fed.expect("quiet", most_lost)
}
