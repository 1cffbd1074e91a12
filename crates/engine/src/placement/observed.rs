//! The cost of hops, measured in running cycles.
//!
//! Calibration hands over between threads of the server that have nothing else to do. Clients are
//! processes, with memory of their own to reach, and another CPU has slept for most of a cycle when
//! it is woken.

use rt::record::{ClientRecord, CycleRecord, UNKNOWN_CPU};

use super::{Costs, HopCost};
use crate::average::Average;

/// One cycle in this many is observed.
const SAMPLE_INTERVAL: u32 = 8;
/// Observed costs are clamped to the calibrated ones times this factor, or divided by it, because
/// clients write their timestamps themselves.
const MAX_FACTOR: u64 = 8;

/// Collects the records of cycles, and the costs that follow from them.
#[derive(Debug, Default)]
pub struct ObservedCosts {
    /// The driver's record of the cycle whose clients' records follow.
    driver: CycleRecord,
    clients: Vec<ClientRecord>,
    /// A hop to a client on another CPU, which has slept.
    cross_hop: ObservedCost,
    /// A switch from one client to another that is ready, on the same CPU.
    switch: ObservedCost,
    /// From the end of the driver's accounting until it sleeps.
    leave: ObservedCost,
}

impl ObservedCosts {
    /// Begins the records of the next cycle.
    pub fn begin(&mut self, driver: CycleRecord, calibrated: Costs) {
        self.end(calibrated);
        self.driver = driver;
    }

    /// Notes one more record of the cycle.
    pub fn note(&mut self, client: ClientRecord) {
        let has_run =
            [client.signaled_ns, client.awake_ns, client.finished_ns].iter().all(|ns| *ns != 0);
        let is_sampled =
            self.driver.cycle.is_multiple_of(SAMPLE_INTERVAL) && client.cycle == self.driver.cycle;
        if is_sampled && has_run && client.cpu != UNKNOWN_CPU {
            self.clients.push(client);
        }
    }

    /// Ages the observations; called with each review of the schedule, about once a second.
    pub fn review(&mut self, calibrated: Costs) {
        self.cross_hop.review(calibrated.cross_cpu.hop_ns);
        self.switch.review(calibrated.switch_ns());
        self.leave.review(0);
    }

    /// The calibrated costs, corrected by what was observed.
    #[must_use]
    pub fn costs(&self, calibrated: Costs) -> Costs {
        let Costs { same_cpu, cross_cpu, .. } = calibrated;
        let same_hop_ns = same_cpu.wake_ns.saturating_add(self.switch.or(calibrated.switch_ns()));
        let cross_hop_ns =
            self.cross_hop.or(cross_cpu.hop_ns).max(same_hop_ns).max(cross_cpu.wake_ns);
        Costs {
            same_cpu: HopCost { hop_ns: same_hop_ns, ..same_cpu },
            cross_cpu: HopCost { hop_ns: cross_hop_ns, ..cross_cpu },
            ..calibrated
        }
    }

    /// How long the driver takes from the end of its accounting until it sleeps, ns.
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

    /// Notes the first client that ran on its CPU, which had slept or is the driver's.
    fn note_first(
        &mut self,
        first: &ClientRecord,
        firsts: &[ClientRecord],
        all: &[ClientRecord],
        calibrated: Costs,
    ) {
        let gap_ns = first.awake_ns.saturating_sub(first.signaled_ns);
        let hop_ns = near(gap_ns, calibrated.cross_cpu.hop_ns);
        if first.signaled_ns != self.driver.released_ns {
            // A client signals its followers with the timestamp of its own end.
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
                self.leave.note(left_ns.min(MAX_FACTOR * calibrated.same_cpu.hop_ns));
            }
        } else {
            // Only the first CPU that the driver woke: the wake-ups of the others include its own.
            let mut elsewhere = firsts.iter().filter(|other| {
                other.signaled_ns == self.driver.released_ns && other.cpu != self.driver.cpu
            });
            if elsewhere.all(|other| first.awake_ns <= other.awake_ns) {
                self.cross_hop.note(hop_ns);
            }
        }
    }

    /// Notes two clients that ran on the same CPU, the second after the first.
    fn note_switch(
        &mut self,
        before: &ClientRecord,
        after: &ClientRecord,
        all: &[ClientRecord],
        calibrated: Costs,
    ) {
        let was_ready = after.signaled_ns <= before.finished_ns;
        // If the second preempted the first, the switch came before the first one's end.
        let (true, Some(gap_ns)) = (was_ready, after.awake_ns.checked_sub(before.finished_ns))
        else {
            return;
        };
        let is_woken = after.signaled_ns == before.finished_ns;
        if woken_by(before, all).count() > usize::from(is_woken) {
            // It woke others in between.
            return;
        }
        let wake_ns = if is_woken { calibrated.same_cpu.wake_ns } else { 0 };
        self.switch.note(near(gap_ns.saturating_sub(wake_ns), calibrated.switch_ns()));
    }
}

/// The clients that `waker` has woken.
fn woken_by<'a>(
    waker: &'a ClientRecord,
    all: &'a [ClientRecord],
) -> impl Iterator<Item = &'a ClientRecord> {
    all.iter().filter(|other| other.signaled_ns == waker.finished_ns)
}

/// Recent observations of one cost.
#[derive(Debug, Default)]
struct ObservedCost {
    average: Average,
    /// Reviews since the last observation.
    reviews: u32,
}

/// A hop that was expensive may be avoided, and is then never observed again, however cheap it has
/// become. After this many reviews without an observation, and after each further one, the average
/// moves towards the calibrated cost.
const FORGET_AFTER_REVIEWS: u32 = 8;

impl ObservedCost {
    fn note(&mut self, ns: u64) {
        self.reviews = 0;
        self.average.note(ns);
    }

    fn review(&mut self, calibrated_ns: u64) {
        self.reviews += 1;
        if self.reviews >= FORGET_AFTER_REVIEWS && !self.average.is_empty() {
            self.note(calibrated_ns);
        }
    }

    fn or(&self, calibrated_ns: u64) -> u64 {
        if self.average.is_empty() { calibrated_ns } else { self.average.ns() }
    }
}

fn near(observed_ns: u64, calibrated_ns: u64) -> u64 {
    observed_ns.clamp(calibrated_ns / MAX_FACTOR, calibrated_ns.saturating_mul(MAX_FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATED: Costs = Costs {
        same_cpu: HopCost { hop_ns: 5_000, wake_ns: 2_000 },
        cross_cpu: HopCost { hop_ns: 20_000, wake_ns: 10_000 },
        further_wake_ns: 500,
    };
    const RELEASED_NS: u64 = 1_000_000;
    const END_NS: u64 = RELEASED_NS + 15_000;

    /// (CPU, signaled, awake, finished), ns after the release.
    type Run = (u16, u64, u64, u64);

    /// After many cycles of a driver on CPU 0 and these clients.
    fn observed(runs: &[Run]) -> ObservedCosts {
        let mut observed = ObservedCosts::default();
        for cycle in 1..=100 * SAMPLE_INTERVAL {
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
    fn calibrated_costs_apply_until_something_is_observed() {
        assert_eq!(ObservedCosts::default().costs(CALIBRATED), CALIBRATED);
        let before = ClientRecord {
            cycle: SAMPLE_INTERVAL,
            signaled_ns: 1,
            awake_ns: 90_000,
            ..ClientRecord::default()
        };
        let mut observed = ObservedCosts::default();
        for cycle in SAMPLE_INTERVAL..3 * SAMPLE_INTERVAL {
            observed.begin(CycleRecord { cycle, ..CycleRecord::default() }, CALIBRATED);
            // A client that did not finish, and one of another cycle.
            observed.note(before);
            observed.note(ClientRecord { cycle: cycle + 1, finished_ns: 95_000, ..before });
        }
        assert_eq!(observed.costs(CALIBRATED), CALIBRATED);
    }

    #[test]
    fn a_cpu_that_is_slow_to_wake_costs_more_for_every_waker() {
        let by_driver = observed(&[(1, 0, 50_000, 51_000)]);
        let by_client = observed(&[(0, 0, 20_000, 30_000), (1, 30_000, 80_000, 81_000)]);
        for (case, observed) in [("the driver", by_driver), ("a client", by_client)] {
            let Costs { same_cpu, cross_cpu, .. } = observed.costs(CALIBRATED);
            assert_eq!(cross_cpu, HopCost { hop_ns: 50_000, ..CALIBRATED.cross_cpu }, "{case}");
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
    fn other_wake_ups_and_preemptions_do_not_count_as_switches() {
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
    fn only_the_first_cpu_that_a_waker_wakes_is_observed() {
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
        assert_eq!(lies.cross_cpu.hop_ns, MAX_FACTOR * CALIBRATED.cross_cpu.hop_ns);
        assert_eq!(
            lies.same_cpu.hop_ns,
            CALIBRATED.same_cpu.wake_ns + MAX_FACTOR * CALIBRATED.switch_ns()
        );
        let flattery = observed(&[(1, 0, 0, 0), (1, 0, 0, 0)]).costs(CALIBRATED);
        assert!(flattery.cross_cpu.hop_ns >= flattery.cross_cpu.wake_ns);
        assert!(flattery.cross_cpu.hop_ns >= flattery.same_cpu.hop_ns);
        assert!(flattery.same_cpu.hop_ns >= flattery.same_cpu.wake_ns);
    }

    #[test]
    fn observations_that_stop_are_gradually_forgotten() {
        let runs = [(1, 0, 100_000, 101_000), (0, 0, 40_000, 50_000), (0, 0, 60_000, 61_000)];
        let mut observed = observed(&runs);
        let dear = observed.costs(CALIBRATED);
        assert!(
            dear.cross_cpu.hop_ns > 90_000
                && dear.same_cpu.hop_ns > 10_000
                && observed.leave_ns() > 10_000
        );
        observed.review(CALIBRATED);
        assert_eq!(observed.costs(CALIBRATED), dear);
        for _ in 0..400 * FORGET_AFTER_REVIEWS {
            observed.review(CALIBRATED);
        }
        let Costs { same_cpu, cross_cpu, .. } = observed.costs(CALIBRATED);
        assert!(same_cpu.hop_ns < 5_100 && cross_cpu.hop_ns < 20_100 && observed.leave_ns() < 100);
    }
}
