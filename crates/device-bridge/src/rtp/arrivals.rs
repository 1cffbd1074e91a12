//! The clock of a sender, by when its packets arrive: pure.
//!
//! A packet is late by what it waited for on its way, never early. So of those that arrive in some
//! time, the one that says the latest position for its arrival is the truest.

use client::stream::Timing;

use crate::tunnels::{Answer, FarClock};

/// Time within which one packet counts; before the first, nothing is known, ns.
const FIRST_NS: u64 = 20_000_000;
const WINDOW_NS: u64 = 500_000_000;

/// A packet's arrival.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at_ns: u64,
    /// The position of the first frame behind it.
    position: u64,
}

/// What the sender captures when, as if its packets needed no time but the least that they do.
#[derive(Debug)]
pub(super) struct ArrivalClock {
    rate_hz: f64,
    clock: FarClock,
    /// The truest arrival of the time that ends then.
    window: Option<(u64, Arrival)>,
}

impl ArrivalClock {
    pub(super) fn new(rate_hz: u32) -> Self {
        Self { rate_hz: rate_hz.into(), clock: FarClock::new(rate_hz), window: None }
    }

    /// What comes next has another time: the sender was silent, or began again.
    pub(super) fn reset(&mut self) {
        self.clock.reset();
        self.window = None;
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
                (at_ns + WINDOW_NS, arrival)
            }
        });
    }

    fn is_truer(&self, one: Arrival, other: Arrival) -> bool {
        let later_s = (one.at_ns as f64 - other.at_ns as f64) / 1e9;
        one.position as f64 - other.position as f64 >= later_s * self.rate_hz
    }

    /// Returns what is captured when; a clock that stands if that is not known.
    pub(super) fn timing(&self) -> Timing {
        self.clock.timing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: u32 = 48_000;
    const PACKET: u64 = 320;

    /// By how many frames the clock moves after a while, and by how much its rate is wrong, for
    /// packets that are late by up to `late_ns`, and sent `burst` at a time.
    fn movement(drift: f64, late_ns: u64, burst: u64) -> (f64, f64) {
        let mut clock = ArrivalClock::new(RATE_HZ);
        let frame_ns = 1e9 / (f64::from(RATE_HZ) * (1.0 + drift));
        let (mut earliest, mut latest, mut rate) = (f64::MAX, f64::MIN, 0.0_f64);
        let mut arrived_ns = 0;
        for packet in 0..9_000_u64 {
            let end = (packet + 1) * PACKET;
            let sent = end.next_multiple_of(burst * PACKET);
            let noise = packet.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let at_ns = 5_000_000_000 + (sent as f64 * frame_ns) as u64 + noise % late_ns.max(1);
            arrived_ns = at_ns.max(arrived_ns);
            clock.arrived(arrived_ns, end);
            if packet > 4_500 {
                let timing = clock.timing();
                let captured = (timing.at_ns as f64 - 5e9) / frame_ns;
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
            for (late_ns, burst) in [(0, 1), (3_000_000, 1), (12_000_000, 1), (500_000, 8)] {
                let (moved, rate) = movement(drift, late_ns, burst);
                assert!(moved < 48.0, "{drift} {late_ns} {burst}: {moved} frames");
                assert!(rate < 150e-6, "{drift} {late_ns} {burst}: {rate}");
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
