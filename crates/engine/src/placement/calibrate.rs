//! What a hop costs on this machine.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use rt::park::Park;
use rt::sync::{AtomicU32, AtomicU64, Ordering};
use sys::futex::Futex;
use sys::thread::CpuSet;

use super::{Costs, Handover};

/// What hops cost where it cannot be measured: on the machine that design decisions were measured on.
const TYPICAL: Costs = Costs {
    same_cpu: Handover { hop_ns: 5_000, wake_ns: 1_500 },
    cross_cpu: Handover { hop_ns: 25_000, wake_ns: 3_000 },
};
/// Less than a system call, or more than any scheduler needs: something else was measured.
const PLAUSIBLE_NS: std::ops::RangeInclusive<u64> = 200..=200_000;

const HANDOVERS: u32 = 200;
/// How long each of the two measurements may take.
const BUDGET_NS: u64 = 9_000_000;
/// Before each handover the other thread gets this long to fall asleep, and its CPU with it.
const REST_NS: u64 = 20_000;
/// What the threads may take to start and to be heard.
const GRACE_NS: u64 = 1_000_000;
const STACK_BYTES: usize = 128 * 1024;
/// The lowest real-time priority: above all that is ordinary, below all that is not ours.
const PRIORITY: u32 = 1;

/// Measures what hops cost between the CPUs given: between two threads that hand over as clients do, real-time where that
/// is permitted. With one CPU, both costs are the same.
///
/// Takes some 20 milliseconds at most, on an ordinary thread. Answers typical costs where nothing could be
/// measured, because threads could not be pinned or did not get to run.
#[must_use]
pub fn calibrate(cpus: &[u32]) -> Costs {
    // The first and the last are the least likely to be two halves of one core.
    let (Some(&first), Some(&last)) = (cpus.first(), cpus.last()) else { return TYPICAL };
    let same_cpu = measure(first, first);
    if first == last {
        let costs = plausible(same_cpu, None);
        return Costs { cross_cpu: costs.same_cpu, ..costs };
    }
    plausible(same_cpu, measure(first, last))
}

/// What was measured, or what is typical, as far as it can be true.
fn plausible(same_cpu: Option<Handover>, cross_cpu: Option<Handover>) -> Costs {
    let clamp = |measured: Handover, least: Handover| {
        let hop_ns = measured.hop_ns.clamp(*PLAUSIBLE_NS.start(), *PLAUSIBLE_NS.end()).max(least.hop_ns);
        // A waker that was interrupted by the woken one took no longer.
        Handover { hop_ns, wake_ns: measured.wake_ns.max(least.wake_ns).min(hop_ns) }
    };
    let same_cpu = clamp(same_cpu.unwrap_or(TYPICAL.same_cpu), Handover { hop_ns: 0, wake_ns: 0 });
    Costs { same_cpu, cross_cpu: clamp(cross_cpu.unwrap_or(TYPICAL.cross_cpu), same_cpu) }
}

/// The medians of the handovers from a thread on one CPU to a thread on another, or on the same.
fn measure(from_cpu: u32, to_cpu: u32) -> Option<Handover> {
    let deadline_ns = sys::clock::now_ns() + BUDGET_NS;
    let baton = Arc::new(Baton::default());
    let theirs = Arc::clone(&baton);
    // Neither is joined: on a CPU that somebody else keeps busy in real time they may start late, and end then.
    sys::thread::spawn_named("hop-receiver", STACK_BYTES, move || {
        if pin(to_cpu) {
            theirs.receive(deadline_ns);
        }
    })
    .ok()?;
    let (report, reported) = channel();
    sys::thread::spawn_named("hop-sender", STACK_BYTES, move || {
        if pin(from_cpu) {
            let _ = report.send(baton.send(deadline_ns));
        }
    })
    .ok()?;
    let patience = Duration::from_nanos(BUDGET_NS + GRACE_NS);
    let (hops_ns, wakes_ns) = reported.recv_timeout(patience).ok()?;
    Some(Handover { hop_ns: median(hops_ns)?, wake_ns: median(wakes_ns)? })
}

/// Makes the calling thread run as a client does.
fn pin(cpu: u32) -> bool {
    // Without the right to be real-time, clients are ordinary, too.
    let _ = sys::thread::set_fifo(0, PRIORITY);
    sys::thread::set_affinity(&CpuSet::from_iter([cpu as usize])).is_ok()
}

fn median(mut samples: Vec<u64>) -> Option<u64> {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied()
}

/// What is handed over, and back.
#[derive(Debug, Default)]
struct Baton {
    /// The round that the sender has started; [`OVER`] after the last.
    sent: AtomicU32,
    /// The round that the receiver has woken in.
    received: AtomicU32,
    /// When it did.
    received_at_ns: AtomicU64,
}

const OVER: u32 = u32::MAX;

impl Baton {
    /// How long each handover took, and the wake alone, until all are done or the deadline has passed.
    fn send(&self, deadline_ns: u64) -> (Vec<u64>, Vec<u64>) {
        let mut hops_ns = Vec::with_capacity(HANDOVERS as usize);
        let mut wakes_ns = Vec::with_capacity(HANDOVERS as usize);
        for round in 1..=HANDOVERS {
            let sent_at_ns = rest();
            hand_over(&self.sent, round);
            let woken_at_ns = sys::clock::now_ns();
            if changed(&self.received, round - 1, deadline_ns).is_none() {
                break;
            }
            hops_ns.push(self.received_at_ns.load(Ordering::Relaxed).saturating_sub(sent_at_ns));
            wakes_ns.push(woken_at_ns.saturating_sub(sent_at_ns));
        }
        hand_over(&self.sent, OVER);
        (hops_ns, wakes_ns)
    }

    fn receive(&self, deadline_ns: u64) {
        let mut known = 0;
        while let Some(round) = changed(&self.sent, known, deadline_ns).filter(|round| *round != OVER) {
            self.received_at_ns.store(sys::clock::now_ns(), Ordering::Relaxed);
            hand_over(&self.received, round);
            known = round;
        }
    }
}

/// Lets the other thread fall asleep; answers the time at the end.
fn rest() -> u64 {
    let until_ns = sys::clock::now_ns() + REST_NS;
    loop {
        let now_ns = sys::clock::now_ns();
        if now_ns >= until_ns {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

fn hand_over(word: &AtomicU32, round: u32) {
    // Publishes the time of the handover as well.
    word.store(round, Ordering::Release);
    Futex.wake(word, 1);
}

/// Sleeps until the word is no longer `known`; nothing at the deadline.
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
    fn what_is_measured_is_made_plausible() {
        let handover = |(hop_ns, wake_ns)| Handover { hop_ns, wake_ns };
        let costs =
            |same_cpu, cross_cpu| Costs { same_cpu: handover(same_cpu), cross_cpu: handover(cross_cpu) };
        for (case, same_cpu, cross_cpu, expected) in [
            ("plausible", Some((4_000, 900)), Some((20_000, 2_000)), costs((4_000, 900), (20_000, 2_000))),
            (
                "another CPU seems nearer",
                Some((4_000, 900)),
                Some((3_000, 800)),
                costs((4_000, 900), (4_000, 900)),
            ),
            ("nothing measured", None, None, TYPICAL),
            ("too fast to be true", Some((0, 0)), Some((0, 0)), costs((200, 0), (200, 0))),
            (
                "too slow to be true",
                Some((u64::MAX, u64::MAX)),
                Some((u64::MAX, 9)),
                costs((200_000, 200_000), (200_000, 200_000)),
            ),
            (
                "a waker that was interrupted",
                Some((4_000, 9_000)),
                None,
                costs((4_000, 4_000), (25_000, 4_000)),
            ),
        ] {
            assert_eq!(plausible(same_cpu.map(handover), cross_cpu.map(handover)), expected, "{case}");
        }
    }

    #[test]
    fn the_median_ignores_what_is_out_of_the_ordinary() {
        assert_eq!(median(vec![3, 1, 1_000_000, 2, 0]), Some(2));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn every_handover_arrives_and_the_receiver_is_told_the_end() {
        let baton = Baton::default();
        let deadline_ns = sys::clock::now_ns() + 60_000_000_000;
        let (hops_ns, wakes_ns) = std::thread::scope(|scope| {
            scope.spawn(|| baton.receive(deadline_ns));
            baton.send(deadline_ns)
        });
        assert_eq!((hops_ns.len(), wakes_ns.len()), (HANDOVERS as usize, HANDOVERS as usize));
        assert!(hops_ns.iter().chain(&wakes_ns).all(|duration_ns| *duration_ns > 0));
        assert_eq!(baton.received.into_inner(), HANDOVERS);
        assert!(sys::clock::now_ns() < deadline_ns);
    }

    #[test]
    fn a_receiver_that_never_answers_ends_the_measurement_at_its_deadline() {
        assert_eq!(Baton::default().send(sys::clock::now_ns() + 1_000_000), (vec![], vec![]));
        Baton::default().receive(sys::clock::now_ns() + 1_000_000);
    }

    #[test]
    fn another_cpu_is_never_nearer_than_the_own_and_with_one_cpu_it_is_the_own() {
        let allowed = sys::thread::affinity().unwrap();
        let cpus: Vec<u32> = allowed.iter().map(|cpu| cpu as u32).collect();
        let costs = calibrate(&cpus);
        assert!(costs.same_cpu.hop_ns > 0 && costs.cross_cpu.hop_ns >= costs.same_cpu.hop_ns, "{costs:?}");
        let alone = calibrate(&cpus[..1]);
        assert_eq!(alone.same_cpu, alone.cross_cpu);
        assert_eq!(sys::thread::affinity().unwrap(), allowed, "the caller is not pinned");
    }

    #[test]
    fn without_a_cpu_to_measure_on_the_costs_are_typical() {
        assert_eq!(calibrate(&[]), TYPICAL);
    }
}
