//! What a hop costs on this machine.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use rt::park::Park;
use rt::sync::{AtomicU32, AtomicU64, Ordering};
use sys::futex::Futex;
use sys::thread::CpuSet;

use super::{Costs, HopCost};

/// The cost of hops where it cannot be measured: the one on the machine that the design was
/// measured on.
const TYPICAL: Costs = Costs {
    same_cpu: HopCost { hop_ns: 5_000, wake_ns: 1_500 },
    cross_cpu: HopCost { hop_ns: 25_000, wake_ns: 3_000 },
    further_wake_ns: 1_500,
};
/// A shorter time than a system call takes, or a longer one than any scheduler needs, was not a
/// hop.
const PLAUSIBLE_NS: std::ops::RangeInclusive<u64> = 200..=200_000;

const HOPS: u32 = 24;
/// Clients that are woken at once, to see what further ones cost.
const GROUP: usize = 4;
/// The time limit of each of the three measurements.
const BUDGET_NS: u64 = 20_000_000;
/// How long all threads sleep before each hop, as they do before a cycle: the longer a CPU has
/// slept, the longer it takes to wake, especially a virtual one.
const REST_NS: u64 = 500_000;
/// How long the threads may take to start and to report.
const GRACE_NS: u64 = 1_000_000;
const STACK_BYTES: usize = 128 * 1024;
/// The lowest real-time priority: above all ordinary threads, below other real-time threads.
const PRIORITY: u32 = 1;

/// Measures what hops cost between the CPUs given: between two threads that hand over as clients
/// do, real-time where that is permitted. With one CPU, all hops cost the same.
///
/// Takes at most about 60 milliseconds, on an ordinary thread. Returns typical costs where nothing
/// could be measured because threads could not be pinned or did not get to run.
#[must_use]
pub fn calibrate(cpus: &[u32]) -> Costs {
    // The first and the last are the least likely to be two halves of one core.
    let (Some(&first), Some(&last)) = (cpus.first(), cpus.last()) else { return TYPICAL };
    let same_cpu = measure(first, first, 1);
    if first == last {
        let Costs { same_cpu, .. } = plausible(same_cpu, None, None);
        return Costs { same_cpu, cross_cpu: same_cpu, further_wake_ns: same_cpu.wake_ns };
    }
    plausible(same_cpu, measure(first, last, 1), measure(first, last, GROUP))
}

/// The measured costs (to a client on the same CPU, to one on another, to a group there) where they
/// are plausible, and typical ones otherwise.
fn plausible(
    same_cpu: Option<HopCost>,
    cross_cpu: Option<HopCost>,
    group: Option<HopCost>,
) -> Costs {
    let clamp = |measured: HopCost, least: HopCost| {
        let hop_ns =
            measured.hop_ns.clamp(*PLAUSIBLE_NS.start(), *PLAUSIBLE_NS.end()).max(least.hop_ns);
        // Where the woken thread preempted the waker, the wake-up alone took no longer than the
        // hop.
        HopCost { hop_ns, wake_ns: measured.wake_ns.max(least.wake_ns).min(hop_ns) }
    };
    let further_wake_ns =
        cross_cpu.zip(group).map_or(TYPICAL.further_wake_ns, |(cross_cpu, group)| {
            group.wake_ns.saturating_sub(cross_cpu.wake_ns) / (GROUP as u64 - 1)
        });
    let same_cpu = clamp(same_cpu.unwrap_or(TYPICAL.same_cpu), HopCost { hop_ns: 0, wake_ns: 0 });
    let cross_cpu = clamp(cross_cpu.unwrap_or(TYPICAL.cross_cpu), same_cpu);
    let further_wake_ns = further_wake_ns.min(same_cpu.wake_ns);
    Costs { same_cpu, cross_cpu, further_wake_ns }
}

/// The medians of the hops from a thread on one CPU to `receivers` threads on another, or on
/// the same.
fn measure(from_cpu: u32, to_cpu: u32, receivers: usize) -> Option<HopCost> {
    let deadline_ns = sys::clock::now_ns() + BUDGET_NS;
    let baton = Arc::new(Baton::for_receivers(receivers));
    // None is joined: on a CPU that other real-time threads keep busy they may start late, and end
    // then.
    for receiver in 0..receivers {
        let theirs = Arc::clone(&baton);
        sys::thread::spawn_named("hop-receiver", STACK_BYTES, move || {
            if pin(to_cpu) {
                theirs.receive(receiver, deadline_ns);
            }
        })
        .ok()?;
    }
    let (report, reported) = channel();
    sys::thread::spawn_named("hop-sender", STACK_BYTES, move || {
        if pin(from_cpu) {
            let _ = report.send(baton.send(deadline_ns));
        }
    })
    .ok()?;
    let patience = Duration::from_nanos(BUDGET_NS + GRACE_NS);
    let (hops_ns, wakes_ns) = reported.recv_timeout(patience).ok()?;
    Some(HopCost { hop_ns: median(hops_ns)?, wake_ns: median(wakes_ns)? })
}

/// Makes the calling thread run as a client does.
fn pin(cpu: u32) -> bool {
    // Without the right to it, clients are not real-time either.
    let _ = sys::thread::set_fifo(0, PRIORITY);
    sys::thread::set_affinity(&CpuSet::from_iter([cpu as usize])).is_ok()
}

fn median(mut samples: Vec<u64>) -> Option<u64> {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied()
}

/// What the sender hands over to the receivers and back.
#[derive(Debug, Default)]
struct Baton {
    /// The round that the sender has started, for each receiver on a word of its own, as clients
    /// have it; [`OVER`] after the last.
    sent: Vec<AtomicU32>,
    /// Wake-ups of all receivers in all rounds.
    received: AtomicU32,
    /// Time of the last of these.
    received_at_ns: AtomicU64,
}

const OVER: u32 = u32::MAX;

impl Baton {
    fn for_receivers(count: usize) -> Self {
        Self { sent: (0..count).map(|_| AtomicU32::new(0)).collect(), ..Self::default() }
    }

    /// Hands over until all rounds are done or the deadline has passed. Returns how long each
    /// hop took, and the wake-up alone.
    fn send(&self, deadline_ns: u64) -> (Vec<u64>, Vec<u64>) {
        let mut hops_ns = Vec::with_capacity(HOPS as usize);
        let mut wakes_ns = Vec::with_capacity(HOPS as usize);
        for round in 1..=HOPS {
            let sent_at_ns = rest();
            self.hand_over(round);
            let woken_at_ns = sys::clock::now_ns();
            if !self.all_received(round, deadline_ns) {
                break;
            }
            hops_ns.push(self.received_at_ns.load(Ordering::Relaxed).saturating_sub(sent_at_ns));
            wakes_ns.push(woken_at_ns.saturating_sub(sent_at_ns));
        }
        self.hand_over(OVER);
        (hops_ns, wakes_ns)
    }

    /// Sleeps until every receiver has woken in the round; false at the deadline.
    fn all_received(&self, round: u32, deadline_ns: u64) -> bool {
        let mut received = self.received.load(Ordering::Acquire);
        while received < round * self.sent.len() as u32 {
            let Some(more) = changed(&self.received, received, deadline_ns) else { return false };
            received = more;
        }
        true
    }

    fn hand_over(&self, round: u32) {
        for word in &self.sent {
            word.store(round, Ordering::Release);
            Futex.wake(word, 1);
        }
    }

    fn receive(&self, receiver: usize, deadline_ns: u64) {
        let mut known = 0;
        while let Some(round) =
            changed(&self.sent[receiver], known, deadline_ns).filter(|round| *round != OVER)
        {
            self.received_at_ns.store(sys::clock::now_ns(), Ordering::Relaxed);
            // Release: publishes the timestamp as well.
            self.received.fetch_add(1, Ordering::Release);
            Futex.wake(&self.received, 1);
            known = round;
        }
    }
}

/// Lets all threads sleep; returns the time at the end.
fn rest() -> u64 {
    sys::clock::sleep_until(sys::clock::now_ns() + REST_NS);
    sys::clock::now_ns()
}

/// Sleeps until the word is no longer `known`, and returns it; `None` at the deadline.
fn changed(word: &AtomicU32, known: u32, deadline_ns: u64) -> Option<u32> {
    loop {
        let value = word.load(Ordering::Acquire);
        if value != known {
            return Some(value);
        }
        if sys::clock::now_ns() >= deadline_ns {
            return None;
        }
        Futex.wait(word, known, Some(deadline_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_measurements_are_corrected() {
        let hop = |(hop_ns, wake_ns)| HopCost { hop_ns, wake_ns };
        let costs = |same_cpu, cross_cpu, further_wake_ns| Costs {
            same_cpu: hop(same_cpu),
            cross_cpu: hop(cross_cpu),
            further_wake_ns,
        };
        let (max, near, far) = (u64::MAX, (4_000, 900), (20_000, 2_900));
        for (case, measured, expected) in [
            ("plausible", [Some(near), Some(far), Some((9_000, 4_400))], costs(near, far, 500)),
            (
                "another CPU seems nearer",
                [Some(near), Some((3_000, 800)), None],
                costs(near, near, 900),
            ),
            ("a group is as quick as one", [Some(near), Some(far), Some(far)], costs(near, far, 0)),
            (
                "a group is slower than that many",
                [Some(near), Some(far), Some((max, max))],
                costs(near, far, 900),
            ),
            ("nothing measured", [None; 3], TYPICAL),
            ("too fast to be true", [Some((0, 0)); 3], costs((200, 0), (200, 0), 0)),
            (
                "too slow to be true",
                [Some((max, max)), Some((max, 9)), None],
                costs((200_000, 200_000), (200_000, 200_000), 1_500),
            ),
            (
                "a waker that was interrupted",
                [Some((4_000, 9_000)), None, None],
                costs((4_000, 4_000), (25_000, 4_000), 1_500),
            ),
        ] {
            let [same_cpu, cross_cpu, group] = measured.map(|measured| measured.map(hop));
            assert_eq!(plausible(same_cpu, cross_cpu, group), expected, "{case}");
        }
    }

    #[test]
    fn the_median_ignores_what_is_out_of_the_ordinary() {
        assert_eq!(median(vec![3, 1, 1_000_000, 2, 0]), Some(2));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn every_hop_arrives_before_the_receivers_end() {
        for receivers in [1, GROUP] {
            let baton = Baton::for_receivers(receivers);
            let deadline_ns = sys::clock::now_ns() + 60_000_000_000;
            let (hops_ns, wakes_ns) = std::thread::scope(|scope| {
                for receiver in 0..receivers {
                    let baton = &baton;
                    scope.spawn(move || baton.receive(receiver, deadline_ns));
                }
                baton.send(deadline_ns)
            });
            assert_eq!((hops_ns.len(), wakes_ns.len()), (HOPS as usize, HOPS as usize));
            assert!(hops_ns.iter().chain(&wakes_ns).all(|duration_ns| *duration_ns > 0));
            assert_eq!(baton.received.into_inner(), HOPS * receivers as u32);
            assert!(sys::clock::now_ns() < deadline_ns);
        }
    }

    #[test]
    fn a_receiver_that_never_answers_ends_the_measurement_at_its_deadline() {
        let baton = Baton::for_receivers(1);
        assert_eq!(baton.send(sys::clock::now_ns() + 1_000_000), (vec![], vec![]));
        Baton::for_receivers(1).receive(0, sys::clock::now_ns() + 1_000_000);
    }

    #[test]
    fn a_hop_to_another_cpu_never_costs_less_than_one_on_the_same() {
        let allowed = sys::thread::affinity().unwrap();
        let cpus: Vec<u32> = allowed.iter().map(|cpu| cpu as u32).collect();
        let costs = calibrate(&cpus);
        assert!(
            costs.same_cpu.hop_ns > 0 && costs.cross_cpu.hop_ns >= costs.same_cpu.hop_ns,
            "{costs:?}"
        );
        let alone = calibrate(&cpus[..1]);
        assert_eq!(
            (alone.same_cpu, alone.same_cpu.wake_ns),
            (alone.cross_cpu, alone.further_wake_ns)
        );
        assert_eq!(sys::thread::affinity().unwrap(), allowed, "the caller is not pinned");
    }

    #[test]
    fn without_a_cpu_to_measure_on_the_costs_are_typical() {
        assert_eq!(calibrate(&[]), TYPICAL);
    }
}
