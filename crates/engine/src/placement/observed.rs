//! What hops cost in the cycles that run.
//!
//! Calibration hands over between threads of the server that have nothing else to do. Clients are processes, with memory of
//! their own to reach, and another CPU has slept for most of a cycle when it is woken.

use rt::record::{ClientRecord, CycleRecord};

use super::{Costs, Handover};
use crate::average::Average;

/// One cycle of so many is looked at.
const ONE_OF: u32 = 8;
/// Clients write their dates themselves: what is observed counts as so many times what was calibrated at most, or as that part
/// of it.
const MOST: u64 = 8;

/// Collects the records of a cycle, and what they say.
#[derive(Debug, Default)]
pub struct Observed {
    /// Of the cycle whose records come.
    driver: CycleRecord,
    clients: Vec<ClientRecord>,
    cross_hop: Average,
    switch: Average,
    leave: Average,
    /// Looks since another CPU was roused last.
    looks: u32,
}

/// A CPU that is dear to rouse may be given up for that, and then is not roused any more to see whether it still is: what was
/// observed is forgotten by little after so many looks each.
const FORGET_LOOKS: u32 = 8;

impl Observed {
    /// The next cycle's records begin.
    pub fn begin(&mut self, driver: CycleRecord, calibrated: Costs) {
        self.end(calibrated);
        self.driver = driver;
    }

    /// One more record of the cycle.
    pub fn note(&mut self, client: ClientRecord) {
        let has_run = client.signaled_ns != 0 && client.awake_ns != 0 && client.finished_ns != 0;
        if self.driver.cycle.is_multiple_of(ONE_OF) && client.cycle == self.driver.cycle && has_run {
            self.clients.push(client);
        }
    }

    /// The schedule is looked at.
    pub fn look(&mut self, calibrated: Costs) {
        self.looks += 1;
        if self.looks >= FORGET_LOOKS && !self.cross_hop.is_empty() {
            self.rouse(calibrated.cross_cpu.hop_ns);
        }
    }

    fn rouse(&mut self, hop_ns: u64) {
        self.looks = 0;
        self.cross_hop.note(hop_ns);
    }

    /// The calibrated costs, corrected by what was observed.
    #[must_use]
    pub fn costs(&self, calibrated: Costs) -> Costs {
        let seen =
            |average: Average, instead_ns: u64| if average.is_empty() { instead_ns } else { average.ns() };
        let Costs { same_cpu, cross_cpu, further_wake_ns } = calibrated;
        let same_hop_ns = same_cpu.wake_ns.saturating_add(seen(self.switch, calibrated.switch_ns()));
        let cross_hop_ns = seen(self.cross_hop, cross_cpu.hop_ns).max(same_hop_ns).max(cross_cpu.wake_ns);
        Costs {
            same_cpu: Handover { hop_ns: same_hop_ns, ..same_cpu },
            cross_cpu: Handover { hop_ns: cross_hop_ns, ..cross_cpu },
            further_wake_ns,
        }
    }

    /// How long the driver takes from its books to its sleep, ns.
    #[must_use]
    pub fn leave_ns(&self) -> u64 {
        self.leave.ns()
    }

    fn end(&mut self, calibrated: Costs) {
        let mut clients = std::mem::take(&mut self.clients);
        clients.sort_unstable_by_key(|client| (client.cpu, client.awake_ns));
        for on_cpu in clients.chunk_by(|one, other| one.cpu == other.cpu) {
            self.note_first(&on_cpu[0], &clients, calibrated);
            for two in on_cpu.windows(2) {
                self.note_switch(&two[0], &two[1], calibrated);
            }
        }
        clients.clear();
        self.clients = clients;
    }

    /// The first that ran on its CPU: that had slept, or was the driver's.
    fn note_first(&mut self, first: &ClientRecord, all: &[ClientRecord], calibrated: Costs) {
        let from_driver = first.signaled_ns == self.driver.released_ns;
        let waker_cpu = match from_driver {
            true => Some(self.driver.cpu),
            // A client dates its end and its signals at once.
            false => all.iter().find(|other| other.finished_ns == first.signaled_ns).map(|other| other.cpu),
        };
        if waker_cpu.is_some_and(|cpu| cpu != first.cpu) {
            let hop_ns = first.awake_ns.saturating_sub(first.signaled_ns);
            self.rouse(near(hop_ns, calibrated.cross_cpu.hop_ns));
        } else if from_driver && first.awake_ns > self.driver.end_ns {
            let left_ns = (first.awake_ns - self.driver.end_ns).saturating_sub(calibrated.switch_ns());
            self.leave.note(left_ns.min(MOST * calibrated.same_cpu.hop_ns));
        }
    }

    /// Two that ran on the same CPU, the second after the first.
    fn note_switch(&mut self, before: &ClientRecord, after: &ClientRecord, calibrated: Costs) {
        let apart_ns = after.awake_ns.saturating_sub(before.finished_ns);
        let switch_ns = match after.signaled_ns.cmp(&before.finished_ns) {
            std::cmp::Ordering::Less => apart_ns,
            // By the one before.
            std::cmp::Ordering::Equal => apart_ns.saturating_sub(calibrated.same_cpu.wake_ns),
            std::cmp::Ordering::Greater => return,
        };
        self.switch.note(near(switch_ns, calibrated.switch_ns()));
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
        let before =
            ClientRecord { cycle: ONE_OF, signaled_ns: 1, awake_ns: 90_000, ..ClientRecord::default() };
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
        let lies = observed(&[(1, 0, 1 << 50, 1 << 51), (1, 0, 1 << 52, 1 << 53)]).costs(CALIBRATED);
        assert_eq!(lies.cross_cpu.hop_ns, MOST * CALIBRATED.cross_cpu.hop_ns);
        assert_eq!(lies.same_cpu.hop_ns, CALIBRATED.same_cpu.wake_ns + MOST * CALIBRATED.switch_ns());
        let flattery = observed(&[(1, 0, 0, 0), (1, 0, 0, 0)]).costs(CALIBRATED);
        assert!(flattery.cross_cpu.hop_ns >= flattery.cross_cpu.wake_ns);
        assert!(flattery.cross_cpu.hop_ns >= flattery.same_cpu.hop_ns);
        assert!(flattery.same_cpu.hop_ns >= flattery.same_cpu.wake_ns);
    }

    #[test]
    fn a_cpu_that_is_not_roused_any_more_gets_another_chance_by_and_by() {
        let mut observed = observed(&[(1, 0, 100_000, 101_000)]);
        let dear_ns = observed.costs(CALIBRATED).cross_cpu.hop_ns;
        observed.look(CALIBRATED);
        assert_eq!(observed.costs(CALIBRATED).cross_cpu.hop_ns, dear_ns);
        for _ in 0..200 * FORGET_LOOKS {
            observed.look(CALIBRATED);
        }
        assert!(observed.costs(CALIBRATED).cross_cpu.hop_ns < 21_000);
    }
}
