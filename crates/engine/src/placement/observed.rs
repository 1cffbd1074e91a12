//! What hops cost in the cycles that run.
//!
//! Calibration hands over between threads of the server that have nothing else to do. Clients are
//! processes, with memory of their own to reach, and another CPU has slept for most of a cycle when
//! it is woken.

use rt::record::{ClientRecord, CycleRecord, UNKNOWN_CPU};

use super::{Costs, Handover};
use crate::average::Average;

/// One cycle of so many is looked at.
const ONE_OF: u32 = 8;
/// Clients write their dates themselves: what is observed counts as so many times what was
/// calibrated at most, or as that part of it.
const MOST: u64 = 8;

/// Collects the records of a cycle, and what they say.
#[derive(Debug, Default)]
pub struct Observed {
    /// Of the cycle whose records come.
    driver: CycleRecord,
    clients: Vec<ClientRecord>,
    /// A hop to a client on another CPU, which has slept.
    cross_hop: Seen,
    /// From one client to another that is ready, on the same CPU.
    switch: Seen,
    /// The driver's way from its books to its sleep.
    leave: Seen,
}

impl Observed {
    /// The next cycle's records begin.
    pub fn begin(&mut self, driver: CycleRecord, calibrated: Costs) {
        self.end(calibrated);
        self.driver = driver;
    }

    /// One more record of the cycle.
    pub fn note(&mut self, client: ClientRecord) {
        let has_run =
            [client.signaled_ns, client.awake_ns, client.finished_ns].iter().all(|ns| *ns != 0);
        let is_looked_at =
            self.driver.cycle.is_multiple_of(ONE_OF) && client.cycle == self.driver.cycle;
        if is_looked_at && has_run && client.cpu != UNKNOWN_CPU {
            self.clients.push(client);
        }
    }

    /// The schedule is looked at, about once a second.
    pub fn look(&mut self, calibrated: Costs) {
        self.cross_hop.look(calibrated.cross_cpu.hop_ns);
        self.switch.look(calibrated.switch_ns());
        self.leave.look(0);
    }

    /// The calibrated costs, corrected by what was observed.
    #[must_use]
    pub fn costs(&self, calibrated: Costs) -> Costs {
        let Costs { same_cpu, cross_cpu, .. } = calibrated;
        let same_hop_ns = same_cpu.wake_ns.saturating_add(self.switch.or(calibrated.switch_ns()));
        let cross_hop_ns =
            self.cross_hop.or(cross_cpu.hop_ns).max(same_hop_ns).max(cross_cpu.wake_ns);
        Costs {
            same_cpu: Handover { hop_ns: same_hop_ns, ..same_cpu },
            cross_cpu: Handover { hop_ns: cross_hop_ns, ..cross_cpu },
            ..calibrated
        }
    }

    /// How long the driver takes from its books to its sleep, ns.
    #[must_use]
    pub fn leave_ns(&self) -> u64 {
        self.leave.or(0)
    }

    fn end(&mut self, calibrated: Costs) {
        let mut clients = std::mem::take(&mut self.clients);
        clients.sort_unstable_by_key(|client| (client.cpu, client.awake_ns));
        let on_cpus = || clients.chunk_by(|one, other| one.cpu == other.cpu);
        for on_cpu in on_cpus() {
            for two in on_cpu.windows(2) {
                self.note_switch(&two[0], &two[1], &clients, calibrated);
            }
        }
        let firsts: Vec<ClientRecord> = on_cpus().map(|on_cpu| on_cpu[0]).collect();
        for first in &firsts {
            self.note_first(first, &firsts, &clients, calibrated);
        }
        clients.clear();
        self.clients = clients;
    }

    /// The first that ran on its CPU: that had slept, or was the driver's.
    fn note_first(
        &mut self,
        first: &ClientRecord,
        firsts: &[ClientRecord],
        all: &[ClientRecord],
        calibrated: Costs,
    ) {
        let apart_ns = first.awake_ns.saturating_sub(first.signaled_ns);
        let hop_ns = near(apart_ns, calibrated.cross_cpu.hop_ns);
        if first.signaled_ns != self.driver.released_ns {
            // A client dates its end and its signals at once.
            let waker = all.iter().find(|other| other.finished_ns == first.signaled_ns);
            if waker
                .is_some_and(|waker| waker.cpu != first.cpu && woken_by(waker, all).count() == 1)
            {
                self.cross_hop.note(hop_ns);
            }
        } else if first.cpu == self.driver.cpu {
            if first.awake_ns > self.driver.end_ns {
                let switch_ns = self.switch.or(calibrated.switch_ns());
                let left_ns = (first.awake_ns - self.driver.end_ns).saturating_sub(switch_ns);
                self.leave.note(left_ns.min(MOST * calibrated.same_cpu.hop_ns));
            }
        } else {
            // The others that the driver has roused waited for it to rouse this one before.
            let mut elsewhere = firsts.iter().filter(|other| {
                other.signaled_ns == self.driver.released_ns && other.cpu != self.driver.cpu
            });
            if elsewhere.all(|other| first.awake_ns <= other.awake_ns) {
                self.cross_hop.note(hop_ns);
            }
        }
    }

    /// Two that ran on the same CPU, the second after the first.
    fn note_switch(
        &mut self,
        before: &ClientRecord,
        after: &ClientRecord,
        all: &[ClientRecord],
        calibrated: Costs,
    ) {
        let was_ready = after.signaled_ns <= before.finished_ns;
        // Who preempts another was switched to before that one's end.
        let (true, Some(apart_ns)) = (was_ready, after.awake_ns.checked_sub(before.finished_ns))
        else {
            return;
        };
        let is_woken = after.signaled_ns == before.finished_ns;
        if woken_by(before, all).count() > usize::from(is_woken) {
            // It had others to wake in between.
            return;
        }
        let wake_ns = if is_woken { calibrated.same_cpu.wake_ns } else { 0 };
        self.switch.note(near(apart_ns.saturating_sub(wake_ns), calibrated.switch_ns()));
    }
}

/// The clients that `waker` has woken.
fn woken_by<'a>(
    waker: &'a ClientRecord,
    all: &'a [ClientRecord],
) -> impl Iterator<Item = &'a ClientRecord> {
    all.iter().filter(|other| other.signaled_ns == waker.finished_ns)
}

/// What was observed lately of one cost.
#[derive(Debug, Default)]
struct Seen {
    average: Average,
    /// Looks since it was observed last.
    looks: u32,
}

/// What is dear may be avoided for that, and then is not observed any more, however cheap it has
/// become: so many looks after the last observation, and after each so many more, a little of it is
/// forgotten.
const FORGET_LOOKS: u32 = 8;

impl Seen {
    fn note(&mut self, ns: u64) {
        self.looks = 0;
        self.average.note(ns);
    }

    fn look(&mut self, calibrated_ns: u64) {
        self.looks += 1;
        if self.looks >= FORGET_LOOKS && !self.average.is_empty() {
            self.note(calibrated_ns);
        }
    }

    fn or(&self, calibrated_ns: u64) -> u64 {
        if self.average.is_empty() { calibrated_ns } else { self.average.ns() }
    }
}

fn near(observed_ns: u64, calibrated_ns: u64) -> u64 {
    observed_ns.clamp(calibrated_ns / MOST, calibrated_ns.saturating_mul(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATED: Costs = Costs {
        same_cpu: Handover { hop_ns: 5_000, wake_ns: 2_000 },
        cross_cpu: Handover { hop_ns: 20_000, wake_ns: 10_000 },
        further_wake_ns: 500,
    };
    const RELEASED_NS: u64 = 1_000_000;
    const END_NS: u64 = RELEASED_NS + 15_000;

    /// (CPU, signaled, awake, finished), ns after the release.
    type Run = (u16, u64, u64, u64);

    /// After many cycles of a driver on CPU 0 and these clients.
    fn observed(runs: &[Run]) -> Observed {
        let mut observed = Observed::default();
        for cycle in 1..=100 * ONE_OF {
            let driver = CycleRecord {
                cycle,
                released_ns: RELEASED_NS,
                end_ns: END_NS,
                cpu: 0,
                ..CycleRecord::default()
            };
            observed.begin(driver, CALIBRATED);
            for &(cpu, signaled_ns, awake_ns, finished_ns) in runs {
                let [signaled_ns, awake_ns, finished_ns] =
                    [signaled_ns, awake_ns, finished_ns].map(|after_ns| RELEASED_NS + after_ns);
                observed.note(ClientRecord {
                    cycle,
                    cpu,
                    signaled_ns,
                    awake_ns,
                    finished_ns,
                    ..ClientRecord::default()
                });
            }
        }
        observed
    }

    #[test]
    fn what_was_calibrated_holds_until_something_is_observed() {
        assert_eq!(Observed::default().costs(CALIBRATED), CALIBRATED);
        let before = ClientRecord {
            cycle: ONE_OF,
            signaled_ns: 1,
            awake_ns: 90_000,
            ..ClientRecord::default()
        };
        let mut observed = Observed::default();
        for cycle in ONE_OF..3 * ONE_OF {
            observed.begin(CycleRecord { cycle, ..CycleRecord::default() }, CALIBRATED);
            // One that did not finish, and one of another cycle.
            observed.note(before);
            observed.note(ClientRecord { cycle: cycle + 1, finished_ns: 95_000, ..before });
        }
        assert_eq!(observed.costs(CALIBRATED), CALIBRATED);
    }

    #[test]
    fn a_cpu_that_takes_long_to_rouse_is_dear_whoever_wakes_it() {
        let by_driver = observed(&[(1, 0, 50_000, 51_000)]);
        let by_client = observed(&[(0, 0, 20_000, 30_000), (1, 30_000, 80_000, 81_000)]);
        for (case, observed) in [("the driver", by_driver), ("a client", by_client)] {
            let Costs { same_cpu, cross_cpu, .. } = observed.costs(CALIBRATED);
            assert_eq!(cross_cpu, Handover { hop_ns: 50_000, ..CALIBRATED.cross_cpu }, "{case}");
            assert_eq!(same_cpu, CALIBRATED.same_cpu, "{case}");
        }
    }

    #[test]
    fn a_switch_is_what_lies_between_two_clients_less_the_wake_of_the_second() {
        let waited = observed(&[(0, 0, 20_000, 30_000), (0, 0, 34_000, 40_000)]);
        let woken = observed(&[(0, 0, 20_000, 30_000), (0, 30_000, 36_000, 40_000)]);
        for (case, observed) in [("it waited", waited), ("it was woken", woken)] {
            assert_eq!(observed.costs(CALIBRATED).same_cpu.hop_ns, 6_000, "{case}");
        }
        let idle_between = observed(&[(0, 0, 20_000, 30_000), (0, 80_000, 90_000, 95_000)]);
        assert_eq!(idle_between.costs(CALIBRATED), CALIBRATED);
    }

    #[test]
    fn wakes_of_others_and_preemptions_are_no_switches() {
        let wakes_another =
            [(0, 0, 20_000, 30_000), (0, 0, 60_000, 61_000), (1, 30_000, 80_000, 81_000)];
        let preempts = [(0, 0, 20_000, 90_000), (0, 0, 30_000, 40_000)];
        for (case, runs) in
            [("it wakes another first", &wakes_another[..]), ("it is preempted", &preempts)]
        {
            assert_eq!(observed(runs).costs(CALIBRATED).same_cpu, CALIBRATED.same_cpu, "{case}");
        }
    }

    #[test]
    fn of_the_cpus_that_one_waker_rouses_only_the_first_says_what_that_takes() {
        let by_driver =
            observed(&[(1, 0, 30_000, 31_000), (2, 0, 60_000, 61_000), (3, 0, 90_000, 91_000)]);
        assert_eq!(by_driver.costs(CALIBRATED).cross_cpu.hop_ns, 30_000);
        let by_client =
            [(0, 0, 20_000, 30_000), (1, 30_000, 90_000, 91_000), (2, 30_000, 80_000, 81_000)];
        assert_eq!(observed(&by_client).costs(CALIBRATED).cross_cpu, CALIBRATED.cross_cpu);
    }

    #[test]
    fn the_driver_s_way_to_sleep_is_what_lies_before_the_first_client_there() {
        assert_eq!(observed(&[(0, 0, 22_000, 30_000)]).leave_ns(), 4_000);
        assert_eq!(
            observed(&[(0, 0, 9_000, 30_000)]).leave_ns(),
            0,
            "in sync mode it is awake until the end"
        );
    }

    #[test]
    fn whatever_a_client_says_of_itself_costs_change_by_a_bounded_factor() {
        let lies =
            observed(&[(1, 0, 1 << 50, 1 << 51), (1, 0, 1 << 52, 1 << 53)]).costs(CALIBRATED);
        assert_eq!(lies.cross_cpu.hop_ns, MOST * CALIBRATED.cross_cpu.hop_ns);
        assert_eq!(
            lies.same_cpu.hop_ns,
            CALIBRATED.same_cpu.wake_ns + MOST * CALIBRATED.switch_ns()
        );
        let flattery = observed(&[(1, 0, 0, 0), (1, 0, 0, 0)]).costs(CALIBRATED);
        assert!(flattery.cross_cpu.hop_ns >= flattery.cross_cpu.wake_ns);
        assert!(flattery.cross_cpu.hop_ns >= flattery.same_cpu.hop_ns);
        assert!(flattery.same_cpu.hop_ns >= flattery.same_cpu.wake_ns);
    }

    #[test]
    fn what_is_not_observed_any_more_is_forgotten_by_and_by() {
        let runs = [(1, 0, 100_000, 101_000), (0, 0, 40_000, 50_000), (0, 0, 60_000, 61_000)];
        let mut observed = observed(&runs);
        let dear = observed.costs(CALIBRATED);
        assert!(
            dear.cross_cpu.hop_ns > 90_000
                && dear.same_cpu.hop_ns > 10_000
                && observed.leave_ns() > 10_000
        );
        observed.look(CALIBRATED);
        assert_eq!(observed.costs(CALIBRATED), dear);
        for _ in 0..400 * FORGET_LOOKS {
            observed.look(CALIBRATED);
        }
        let Costs { same_cpu, cross_cpu, .. } = observed.costs(CALIBRATED);
        assert!(same_cpu.hop_ns < 5_100 && cross_cpu.hop_ns < 20_100 && observed.leave_ns() < 100);
    }
}
