//! What a client that had nothing to do with a fault lost meanwhile, loss by loss.
//!
//! A monitoring probe compares every sample with the one that was sent, and prints each loss with
//! its time. A loss is the machine's if a thread above all of the server's and of its clients' did
//! not get its CPU at that time either, and the server's otherwise.

use std::time::{Duration, Instant};

use crate::machine::{MachineWatch, Stall};
use crate::{Counts, Program, not_run};

/// A CPU that is taken for this fraction of a cycle may cost the cycle.
const STALL_DIVISOR: u64 = 4;
const RATE_HZ: u64 = 48_000;
/// Cycles that the machine may take, and a part of those that were heard besides.
const MACHINES_MOST: u64 = 20;
const MACHINES_PART: u64 = 20;

/// Cycles in a row that a monitor did not hear as they were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// "silent", "wrong", "missed": cycles that the monitor itself did not run; "skipped": cycles
    /// that the driver did not run.
    pub kind: String,
    /// How many.
    pub cycles: u64,
    /// When the monitor noticed, `CLOCK_MONOTONIC` ns.
    pub time_ns: u64,
}

/// What a monitoring probe counted and lost.
#[derive(Debug, Clone)]
pub struct Heard {
    /// All of its cycles.
    pub counts: Counts,
    /// The losses that were not the machine's.
    pub losses: Vec<Loss>,
    /// Cycles that the machine took.
    pub machines: u64,
}

/// Watches the machine while cycles of one length are judged.
#[derive(Debug)]
pub struct Judge {
    machine: MachineWatch,
    period_ns: u64,
}

const MOST_ATTEMPTS: u32 = 6;
/// Two failures may be chances that the quiet server did not have: of a machine that takes a cycle
/// in each twentieth attempt, some dozens of verdicts would have one such pair in every few runs.
const MOST_FAILURES: usize = 3;

/// Tries a fault until nothing was lost to it once, or something three times although a quiet
/// server beside it lost nothing, in a run of the duration that it gets. What was lost while a
/// quiet server lost cycles as well does not count; if that is all there was, the test reports that
/// it was not run.
///
/// # Panics
/// If something was lost to the fault.
#[track_caller]
pub fn judged(
    what: &str,
    mut fault: impl FnMut() -> Result<(), String>,
    mut quiet: impl FnMut(Duration) -> Result<(), String>,
) {
    let mut failures = Vec::new();
    for _ in 0..MOST_ATTEMPTS {
        let begun = Instant::now();
        let Err(failure) = fault() else { return };
        match quiet(begun.elapsed()) {
            Ok(()) => failures.push(failure),
            Err(loss) => eprintln!("not judged: {failure}; a quiet server lost as well: {loss}"),
        }
        assert!(failures.len() < MOST_FAILURES, "{what}: {failures:?}");
    }
    not_run("a quiet server loses cycles here as well");
}

impl Loss {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("lost ")?.split(' ');
        let (kind, cycles) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let time_ns = words.nth(1)?.parse().ok()?;
        Some(Self { kind, cycles, time_ns })
    }

    /// The losses among the lines that a monitor has printed.
    pub fn all_of(printed: &str) -> Vec<Self> {
        printed.lines().filter_map(Self::parse).collect()
    }

    /// Whether the machine took a CPU while this happened, in the cycles lost or the two before,
    /// and for long enough: a stall may cost the cycles that it lasts, and two more.
    pub fn is_machines(&self, stalls: &[Stall], period_ns: u64) -> bool {
        let from_ns = self.time_ns.saturating_sub((self.cycles + 2) * period_ns);
        let meanwhile = stalls
            .iter()
            .filter(|stall| stall.until_ns >= from_ns && stall.from_ns <= self.time_ns);
        let cost = |stall: &Stall| stall.until_ns.saturating_sub(stall.from_ns) / period_ns + 2;
        meanwhile.map(cost).sum::<u64>() >= self.cycles
    }
}

impl Judge {
    /// Begins to watch, for cycles of `quantum` frames at 48 kHz. `None` where stalls cannot be
    /// told from a busy machine, because this process gets no real-time priority.
    pub fn of_cycles(quantum: u32) -> Option<Self> {
        let period_ns = u64::from(quantum) * 1_000_000_000 / RATE_HZ;
        let machine = MachineWatch::start(period_ns / STALL_DIVISOR);
        machine.is_realtime.then_some(Self { machine, period_ns })
    }

    /// Ends a monitoring probe, and judges what it lost.
    ///
    /// # Panics
    /// If the probe did not end in order.
    #[track_caller]
    pub fn judge(&self, monitor: Program) -> Heard {
        let printed = monitor.terminate().expect_success().stdout;
        let (stalls, counts) = (self.machine.stalls(), Counts::parse(&printed));
        let (machines, losses): (Vec<Loss>, Vec<Loss>) = Loss::all_of(&printed)
            .into_iter()
            .partition(|loss| loss.is_machines(&stalls, self.period_ns));
        Heard { counts, losses, machines: machines.iter().map(|loss| loss.cycles).sum() }
    }
}

impl Heard {
    /// Cycles lost, not to the machine.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.cycles).sum()
    }

    /// Cycles lost in one way, not to the machine.
    pub fn lost_as(&self, kind: &str) -> u64 {
        self.losses.iter().filter(|loss| loss.kind == kind).map(|loss| loss.cycles).sum()
    }

    /// Leaves out what was lost in one way, because the test itself has caused that.
    #[must_use]
    pub fn without(mut self, kind: &str) -> Self {
        self.losses.retain(|loss| loss.kind != kind);
        self
    }

    /// Leaves out what was lost before a time, `CLOCK_MONOTONIC` ns, but for wrong samples.
    #[must_use]
    pub fn after(mut self, time_ns: u64) -> Self {
        self.losses.retain(|loss| loss.time_ns > time_ns || loss.kind == "wrong");
        self
    }

    /// Demands that it heard something, nothing wrong, lost at most that much, and was not mostly
    /// kept from hearing by a machine that stalled: whatever stalls it for long may be what is
    /// tried.
    ///
    /// # Errors
    /// If not; the text has the losses.
    pub fn expect(&self, what: &str, most_lost: u64) -> Result<(), String> {
        if self.machines > MACHINES_MOST + self.counts.good / MACHINES_PART {
            return Err(format!("{what}: the machine stalled for too long: {self:?}"));
        }
        let is_right = self.counts.good > 0 && self.lost_as("wrong") == 0;
        if is_right && self.lost() <= most_lost {
            return Ok(());
        }
        Err(format!("{what}: more than {most_lost} lost, or a wrong sample: {self:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_if_a_quiet_server_loses_nothing() {
        let lost = || Err("one".to_owned());
        let mut faults = 0;
        judged(
            "once",
            || if std::mem::replace(&mut faults, 1) == 0 { lost() } else { Ok(()) },
            |_| Ok(()),
        );
        assert!(std::panic::catch_unwind(|| judged("always", lost, |_| Ok(()))).is_err());
    }

    #[test]
    fn a_machine_that_stalls_most_of_the_time_excuses_nothing() {
        let counts = Counts { cycles: 1000, good: 1000, silent: 0, wrong: 0, missed: 0 };
        let heard = |machines| Heard { counts, losses: Vec::new(), machines };
        assert_eq!(heard(70).expect("some", 0), Ok(()));
        assert!(heard(71).expect("many", 0).is_err());
    }

    #[test]
    fn a_loss_is_the_machines_only_while_it_stalls() {
        let printed = "ready\nlost silent 2 at 9000\nlost wrong 1 at 50000\ncycles 9\n";
        let [first, second] = &Loss::all_of(printed)[..] else { panic!("two losses") };
        assert_eq!((first.kind.as_str(), first.cycles, first.time_ns), ("silent", 2, 9000));
        let stall = |from_ns, until_ns| [Stall { from_ns, until_ns }];
        assert!(first.is_machines(&stall(5500, 5600), 1000), "within the two cycles before");
        assert!(!first.is_machines(&stall(4000, 4900), 1000), "long before");
        assert!(!first.is_machines(&stall(9100, 9900), 1000), "after");
        assert!(!second.is_machines(&stall(5500, 5600), 1000));
        let long = &Loss::all_of("lost missed 9 at 20000\n")[0];
        assert!(!long.is_machines(&stall(15_000, 15_300), 1000), "for a moment only");
        assert!(long.is_machines(&stall(11_000, 18_500), 1000), "most of the time");
    }
}
