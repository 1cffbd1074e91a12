//! The diagnosis of an xrun: where the time of a late thread went, according to the kernel's
//! counters.

use std::collections::BTreeMap;

use proto::xrun::{CpuUser, Evidence, Verdict};
use sys::clock::now_ns;
use sys::thread::{CpuTime, Switch, ThreadCounters, ThreadFacts};

/// A reading of a thread's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sample {
    time_ns: u64,
    cpu_time: CpuTime,
}

/// A reading of everything else, with the number of cycles so far.
#[derive(Debug, Clone, Copy)]
struct FactsSample {
    time_ns: u64,
    facts: ThreadFacts,
    cycles: u64,
}

/// Reads the kernel's counters of one thread. Thread: control, never in a cycle.
#[derive(Debug)]
pub struct ThreadProbe {
    counters: ThreadCounters,
    /// The last two readings, older first: one of them is older than a cycle that has just been
    /// lost.
    samples: [Sample; 2],
    facts: Option<FactsSample>,
    /// The usual shares of time in which the thread runs, and in which it is ready without running.
    usual: (f64, f64),
}

/// All counters of a thread at once. A reading takes as long as some cycles do, so that one serves
/// all earlier xruns of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    time_ns: u64,
    cpu_time: CpuTime,
    facts: ThreadFacts,
}

/// The time that a thread had, but did not finish in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// When it could run, ns.
    pub begin_ns: u64,
    /// When its grace was over, ns. What it did later, without its priority, is not relevant.
    pub end_ns: u64,
}

/// The counters that cost more than the times are read at least this far apart.
const FACTS_NS: u64 = 500_000_000;
/// Weight of a new reading in the usual shares.
const WEIGHT: f64 = 0.2;

impl ThreadProbe {
    /// Opens the counters of a thread; `None` if the kernel does not show them.
    pub fn of(process: u32, thread: u32) -> Option<Self> {
        let counters = ThreadCounters::open(process, thread).ok()?;
        Some(Self { counters, samples: [Sample::default(); 2], facts: None, usual: (0.0, 0.0) })
    }

    /// Reads the times and, now and then, the rest. To be called tens of milliseconds apart.
    pub fn poll(&mut self, now_ns: u64, cycles: u64) {
        let [_, last] = self.samples;
        let Ok(cpu_time) = self.counters.cpu_time() else { return };
        let sample = Sample { time_ns: now_ns, cpu_time };
        if last.time_ns != 0 {
            let (running, runnable) = shares(last, sample);
            self.usual.0 += (running - self.usual.0) * WEIGHT;
            self.usual.1 += (runnable - self.usual.1) * WEIGHT;
        }
        self.samples = [last, sample];
        if self.facts.is_none_or(|facts| now_ns >= facts.time_ns + FACTS_NS) {
            let facts = self.counters.facts().ok();
            self.facts = facts.map(|facts| FactsSample { time_ns: now_ns, facts, cycles });
        }
    }

    /// Reads all counters; `None`: the thread has ended.
    pub fn read(&self) -> Option<Reading> {
        let facts = self.counters.facts().ok()?;
        let cpu_time = self.counters.cpu_time().ok()?;
        Some(Reading { cpu_time, facts, time_ns: now_ns() })
    }

    /// Returns where the lost time went, from the newest reading `now`. `began`: the client's own
    /// page says that it had begun the cycle.
    pub fn diagnose(
        &self,
        loss: Loss,
        began: bool,
        now: Option<Reading>,
        cycles: u64,
    ) -> (Verdict, Option<Evidence>) {
        let Some(Reading { cpu_time, facts, time_ns: now_ns }) = now else {
            return (Verdict::Gone, None);
        };
        let before =
            self.samples.iter().rev().find(|sample| (1..=loss.begin_ns).contains(&sample.time_ns));
        let Some(before) = before else { return (Verdict::Unknown, None) };
        let split =
            split(loss, *before, Sample { time_ns: now_ns, cpu_time }, self.usual, facts.state);
        let mut evidence = Evidence { state: facts.state, cpu: facts.cpu, ..split };
        if let Some(earlier) = &self.facts {
            let since = |now: u64, then: u64| now.saturating_sub(then);
            evidence.minor_faults = since(facts.minor_faults, earlier.facts.minor_faults);
            evidence.major_faults = since(facts.major_faults, earlier.facts.major_faults);
            evidence.voluntary_switches =
                since(facts.voluntary_switches, earlier.facts.voluntary_switches);
            evidence.involuntary_switches =
                since(facts.involuntary_switches, earlier.facts.involuntary_switches);
            evidence.cycles = since(cycles, earlier.cycles);
        }
        (verdict(&evidence, began), Some(evidence))
    }
}

/// Returns the shares of the time between two readings that the thread ran, and was ready.
fn shares(from: Sample, to: Sample) -> (f64, f64) {
    let elapsed_ns = to.time_ns.saturating_sub(from.time_ns).max(1) as f64;
    let share = |from: u64, to: u64| (to.saturating_sub(from) as f64 / elapsed_ns).min(1.0);
    (
        share(from.cpu_time.running_ns, to.cpu_time.running_ns),
        share(from.cpu_time.runnable_ns, to.cpu_time.runnable_ns),
    )
}

/// Splits the lost time into running, ready and asleep: the difference of two readings, less what
/// is usual for the time before the loss.
fn split(loss: Loss, before: Sample, now: Sample, usual: (f64, f64), state: char) -> Evidence {
    let lost_ns = loss.end_ns.min(now.time_ns).saturating_sub(loss.begin_ns);
    let ordinary_ns = loss.begin_ns.saturating_sub(before.time_ns) as f64;
    let beyond = |before: u64, now: u64, usual: f64| {
        now.saturating_sub(before).saturating_sub((ordinary_ns * usual) as u64)
    };
    let running_ns =
        beyond(before.cpu_time.running_ns, now.cpu_time.running_ns, usual.0).min(lost_ns);
    let waited_ns = beyond(before.cpu_time.runnable_ns, now.cpu_time.runnable_ns, usual.1);
    let waited_ns = waited_ns.min(lost_ns - running_ns);
    let rest_ns = lost_ns - running_ns - waited_ns;
    // A wait for the CPU is counted when it ends: if it still waits, the rest belongs to the wait.
    let (runnable_ns, asleep_ns) =
        if state == 'R' { (waited_ns + rest_ns, 0) } else { (waited_ns, rest_ns) };
    Evidence { lost_ns, running_ns, runnable_ns, asleep_ns, ..Evidence::default() }
}

fn verdict(evidence: &Evidence, began: bool) -> Verdict {
    let Evidence { lost_ns, running_ns, runnable_ns, asleep_ns, state, .. } = *evidence;
    match state {
        'T' | 't' => Verdict::Stopped,
        'Z' | 'X' => Verdict::Gone,
        _ if running_ns >= lost_ns / 2
            || (running_ns >= runnable_ns && running_ns >= asleep_ns) =>
        {
            Verdict::Busy
        }
        _ if runnable_ns >= asleep_ns => Verdict::NotRunning,
        _ if began => Verdict::Blocked,
        _ => Verdict::NotWoken,
    }
}

/// Threads that are named for one xrun.
const CPU_USERS: usize = 3;

/// Returns what ran on a CPU in the lost time, the longest first. `switches` are the CPU's, oldest
/// first.
pub fn cpu_users(switches: &[Switch], loss: Loss) -> Vec<CpuUser> {
    let mut users: BTreeMap<u32, CpuUser> = BTreeMap::new();
    let ends = switches.iter().skip(1).map(|switch| switch.time_ns).chain([u64::MAX]);
    for (switch, end_ns) in switches.iter().zip(ends) {
        let (from_ns, to_ns) = (switch.time_ns.max(loss.begin_ns), end_ns.min(loss.end_ns));
        let ran_ns = to_ns.saturating_sub(from_ns);
        if ran_ns == 0 {
            continue;
        }
        let user = users.entry(switch.thread).or_insert_with(|| CpuUser {
            thread: switch.thread,
            name: if switch.thread == 0 { "idle".into() } else { switch.name.clone() },
            realtime_priority: switch.realtime_priority,
            ran_ns: 0,
        });
        user.ran_ns += ran_ns;
    }
    let mut users: Vec<CpuUser> = users.into_values().collect();
    users.sort_by_key(|user| std::cmp::Reverse(user.ran_ns));
    users.truncate(CPU_USERS);
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_ran_in_the_lost_time_are_named_by_how_long_they_did() {
        let switch = |time_ms: u64, thread: u32| Switch {
            time_ns: time_ms * MS,
            thread,
            name: format!("thread {thread}"),
            realtime_priority: (thread == 7).then_some(40),
        };
        let switches = [
            switch(90, 5),
            switch(101, 7),
            switch(105, 5),
            switch(106, 0),
            switch(108, 7),
            switch(120, 9),
        ];
        let users = cpu_users(&switches, LOSS);
        let users: Vec<(&str, u64)> =
            users.iter().map(|user| (user.name.as_str(), user.ran_ns / MS)).collect();
        assert_eq!(users, [("thread 7", 6), ("idle", 2), ("thread 5", 2)]);
        assert_eq!(cpu_users(&[], LOSS), []);
        assert_eq!(cpu_users(&[switch(10, 3)], LOSS)[0].ran_ns, 10 * MS, "it runs still");
    }

    const MS: u64 = 1_000_000;
    const LOSS: Loss = Loss { begin_ns: 100 * MS, end_ns: 110 * MS };

    fn sample(time_ms: u64, running_ms: u64, runnable_ms: u64) -> Sample {
        let cpu_time = CpuTime { running_ns: running_ms * MS, runnable_ns: runnable_ms * MS };
        Sample { time_ns: time_ms * MS, cpu_time }
    }

    fn judged(now: Sample, usual: (f64, f64), state: char) -> Verdict {
        let evidence = split(LOSS, sample(80, 50, 10), now, usual, state);
        let Evidence { lost_ns, running_ns, runnable_ns, asleep_ns, .. } = evidence;
        assert_eq!(running_ns + runnable_ns + asleep_ns, lost_ns);
        verdict(&Evidence { state, ..evidence }, true)
    }

    #[test]
    fn the_kind_that_took_most_of_the_lost_time_is_named() {
        for (case, now, usual, state, expected) in [
            ("it ran", sample(112, 60, 10), (0.0, 0.0), 'S', Verdict::Busy),
            ("it runs still", sample(112, 60, 10), (0.0, 0.0), 'R', Verdict::Busy),
            ("it waited", sample(112, 51, 18), (0.0, 0.0), 'S', Verdict::NotRunning),
            ("it waits still", sample(112, 51, 10), (0.0, 0.0), 'R', Verdict::NotRunning),
            ("it slept", sample(112, 51, 10), (0.0, 0.0), 'S', Verdict::Blocked),
            ("it waits for a disk", sample(112, 51, 10), (0.0, 0.0), 'D', Verdict::Blocked),
            ("it is stopped", sample(112, 51, 10), (0.0, 0.0), 'T', Verdict::Stopped),
            ("it is dead", sample(112, 51, 10), (0.0, 0.0), 'Z', Verdict::Gone),
            (
                "it usually runs half of the time",
                sample(112, 61, 10),
                (0.5, 0.0),
                'S',
                Verdict::Blocked,
            ),
            (
                "it usually waits half of the time",
                sample(112, 51, 20),
                (0.0, 0.5),
                'S',
                Verdict::Blocked,
            ),
            (
                "it ran, and waits without its priority",
                sample(140, 60, 30),
                (0.0, 0.0),
                'R',
                Verdict::Busy,
            ),
        ] {
            assert_eq!(judged(now, usual, state), expected, "{case}");
        }
    }

    #[test]
    fn a_sleeping_thread_that_had_not_begun_was_not_woken() {
        let asleep = Evidence { lost_ns: 10, asleep_ns: 10, state: 'S', ..Evidence::default() };
        assert_eq!(
            (verdict(&asleep, true), verdict(&asleep, false)),
            (Verdict::Blocked, Verdict::NotWoken)
        );
    }

    #[test]
    fn without_an_earlier_reading_the_verdict_is_unknown() {
        let own = ThreadProbe::of(sys::process::process_id(), sys::thread::thread_id()).unwrap();
        let now = own.read().map(|now| Reading { time_ns: 112 * MS, ..now });
        assert_eq!(own.diagnose(LOSS, true, now, 0), (Verdict::Unknown, None));
        assert_eq!(own.diagnose(LOSS, true, None, 0), (Verdict::Gone, None));
    }
}
