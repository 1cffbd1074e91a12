//! The clock of a sender, by when its packets arrive: pure.
//!
//! A packet is late by what it waited for on its way, never early. So of those that arrive in some
//! time, the one that says the latest position for its arrival is the truest.
//!
//! The first ones are still late by milliseconds. What a link follows would be heard if it took
//! such an error back at once, so it only runs a little faster or slower until none is left.

use client::stream::Timing;

use crate::tunnels::{Answer, FarClock, timing_at};

/// Time within which one packet counts; before the first, nothing is known, ns.
const FIRST_NS: u64 = 20_000_000;
const WINDOW_NS: u64 = 500_000_000;
/// How much faster or slower a clock is run to correct it, relative to its measured rate: a third
/// of a hundredth of a semitone, which is inaudible.
const CORRECTION: f64 = 200e-6;
/// The time that a correction would take if it stayed as it began, s: small ones are slower still.
const CORRECTED_IN_S: f64 = 4.0;
/// An error beyond this is none of the arrivals': the sender stood, or left something out, s.
const JUMP_S: f64 = 0.02;

/// A packet's arrival.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at_ns: u64,
    /// The position of the first frame behind it.
    position: u64,
}

/// A clock as a link follows it.
#[derive(Debug, Clone, Copy)]
struct Pace {
    at_ns: u64,
    position: f64,
    rate_hz: f64,
}

impl Pace {
    /// Returns the position then.
    fn position_at(&self, at_ns: u64) -> f64 {
        self.position + (at_ns as f64 - self.at_ns as f64) * self.rate_hz / 1e9
    }

    /// Returns a clock that goes on from this one at `at_ns`, without a step, so that it comes to
    /// what is `known`.
    fn towards(&self, known: &Self, at_ns: u64) -> Self {
        let position = self.position_at(at_ns);
        let apart_s = (known.position_at(at_ns) - position) / known.rate_hz;
        if apart_s.abs() > JUMP_S {
            return *known;
        }
        let faster = (apart_s / CORRECTED_IN_S).clamp(-CORRECTION, CORRECTION);
        Self { at_ns, position, rate_hz: known.rate_hz * (1.0 + faster) }
    }
}

/// What the sender captures when, as if its packets needed no time but the least that they do.
#[derive(Debug)]
pub(super) struct ArrivalClock {
    rate_hz: f64,
    /// The sender's clock, as measured by the earliest arrivals.
    clock: FarClock,
    pace: Option<Pace>,
    /// The truest arrival of the time that ends then.
    window: Option<(u64, Arrival)>,
}

impl ArrivalClock {
    pub(super) fn new(rate_hz: u32) -> Self {
        Self { rate_hz: rate_hz.into(), clock: FarClock::new(rate_hz), pace: None, window: None }
    }

    /// What comes next has another time: the sender was silent, or began again.
    pub(super) fn reset(&mut self) {
        self.clock.reset();
        (self.pace, self.window) = (None, None);
    }

    /// A packet has arrived, behind which `position` is the next.
    pub(super) fn arrived(&mut self, at_ns: u64, position: u64) {
        let arrival = Arrival { at_ns, position };
        self.window = Some(match self.window {
            None => (at_ns + FIRST_NS, arrival),
            Some((until_ns, truest)) if at_ns < until_ns => {
                (until_ns, if self.is_truer(arrival, truest) { arrival } else { truest })
            }
            Some((_, truest)) => {
                let Arrival { at_ns: answered_ns, position } = truest;
                let position = position as f64;
                self.clock.answered(Answer { asked_ns: answered_ns, answered_ns, position });
                self.follow(arrival.at_ns);
                (at_ns + WINDOW_NS, arrival)
            }
        });
    }

    /// The clock is known better since `at_ns`.
    fn follow(&mut self, at_ns: u64) {
        let Timing { at_ns: known_ns, position, frame_ps, .. } = self.clock.timing();
        let rate_hz = 1e12 / frame_ps as f64;
        let known = Pace { at_ns: known_ns, position: position as f64, rate_hz };
        self.pace = Some(self.pace.map_or(known, |pace| pace.towards(&known, at_ns)));
    }

    fn is_truer(&self, one: Arrival, other: Arrival) -> bool {
        let later_s = (one.at_ns as f64 - other.at_ns as f64) / 1e9;
        one.position as f64 - other.position as f64 >= later_s * self.rate_hz
    }

    /// Returns what is captured when; a clock that stands if that is not known.
    pub(super) fn timing(&self) -> Timing {
        self.pace.map_or_else(Timing::default, |Pace { at_ns, position, rate_hz }| {
            timing_at(at_ns, position, rate_hz)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steering::Steering;

    const RATE_HZ: u32 = 48_000;
    const PACKET: u64 = 320;
    const BEGIN_NS: u64 = 5_000_000_000;
    /// How packets come: by how much they are late, at most, ns, and how many are sent at a time.
    const NETWORKS: [(u64, u64); 5] =
        [(0, 1), (3_000_000, 1), (12_000_000, 1), (500_000, 2), (500_000, 8)];

    /// When each packet arrives, ns.
    fn arrivals(frame_ns: f64, (late_ns, burst): (u64, u64)) -> impl Iterator<Item = u64> {
        let mut arrived_ns = 0;
        (0_u64..).map(move |packet| {
            let sent = ((packet + 1) * PACKET).next_multiple_of(burst * PACKET);
            let noise = packet.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let at_ns = BEGIN_NS + (sent as f64 * frame_ns) as u64 + noise % late_ns.max(1);
            arrived_ns = at_ns.max(arrived_ns);
            arrived_ns
        })
    }

    /// Returns how many frames the clock still moves after it has settled, and the error of its
    /// rate.
    fn movement(drift: f64, network: (u64, u64)) -> (f64, f64) {
        let mut clock = ArrivalClock::new(RATE_HZ);
        let frame_ns = 1e9 / (f64::from(RATE_HZ) * (1.0 + drift));
        let (mut earliest, mut latest, mut rate) = (f64::MAX, f64::MIN, 0.0_f64);
        for (packet, at_ns) in (0..9_000_u64).zip(arrivals(frame_ns, network)) {
            clock.arrived(at_ns, (packet + 1) * PACKET);
            if packet > 4_500 {
                let timing = clock.timing();
                let captured = (timing.at_ns - BEGIN_NS) as f64 / frame_ns;
                let apart = captured - timing.position as f64;
                (earliest, latest) = (earliest.min(apart), latest.max(apart));
                let known = 1e12 / timing.frame_ps as f64 / f64::from(RATE_HZ) - 1.0;
                rate = rate.max((known - drift).abs());
            }
        }
        (latest - earliest, rate)
    }

    #[test]
    fn a_senders_clock_moves_by_less_than_a_millisecond_however_late_its_packets_are() {
        for drift in [0.0, 100e-6, -300e-6] {
            for network in NETWORKS {
                let (moved, rate) = movement(drift, network);
                assert!(moved < 48.0, "{drift} {network:?}: {moved} frames");
                assert!(rate < 150e-6, "{drift} {network:?}: {rate}");
            }
        }
    }

    /// Returns the greatest difference between the rates of a link and the sender, relative, while
    /// the link learns the clock and afterwards.
    fn detuning(drift: f64, network: (u64, u64)) -> f64 {
        let (mut clock, mut steering) = (ArrivalClock::new(RATE_HZ), Steering::new(RATE_HZ.into()));
        let frame_ns = 1e9 / (f64::from(RATE_HZ) * (1.0 + drift));
        let (mut played, mut worst) = (None, 0.0_f64);
        for (packet, at_ns) in (0..4_500_u64).zip(arrivals(frame_ns, network)) {
            clock.arrived(at_ns, (packet + 1) * PACKET);
            let timing = clock.timing();
            if timing.frame_ps == 0 {
                continue;
            }
            // A packet's frames by the exact clock of the sink.
            let now_ns = BEGIN_NS + packet * PACKET * 1_000_000_000 / u64::from(RATE_HZ);
            let passed_ps = (now_ns as f64 - timing.at_ns as f64) * 1e3;
            let due = timing.position as f64 + passed_ps / timing.frame_ps as f64;
            let at = played.get_or_insert(due);
            let more = steering.update(due - *at, PACKET as f64 / f64::from(RATE_HZ));
            *at += PACKET as f64 * (1.0 + more);
            worst = worst.max((more - drift).abs());
        }
        assert!(played.is_some());
        worst
    }

    #[test]
    fn a_link_that_learns_a_senders_clock_is_never_heard_to_change_its_pitch() {
        for network in NETWORKS {
            for drift in [0.0, 100e-6, -300e-6_f64] {
                let worst = detuning(drift, network);
                // What it begins with is a clock that is off by its drift.
                assert!(worst < drift.abs() + 250e-6, "{drift} {network:?}: {worst}");
            }
        }
    }

    #[test]
    fn a_sender_that_was_silent_has_another_time() {
        let mut clock = ArrivalClock::new(RATE_HZ);
        assert_eq!(clock.timing(), Timing::default());
        clock.arrived(1_000_000_000, 480);
        clock.arrived(1_015_000_000, 1_440);
        assert_eq!(clock.timing(), Timing::default(), "nothing is known yet");
        clock.arrived(1_030_000_000, 1_920);
        let timing = clock.timing();
        assert_eq!((timing.at_ns, timing.position), (1_015_000_000, 1_440), "the truest");
        clock.reset();
        assert_eq!(clock.timing(), Timing::default());
    }
}
