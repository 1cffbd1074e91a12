//! The clock of a stream at another server, by what that answers to questions about it: pure.
//!
//! An answer is true at some time between its question and its arrival. Those that took long say
//! little, and are left out; the others are smoothed, so that the jitter of a network is not heard.

use client::stream::Timing;

/// Largest deviation of a clock, relative.
const WORST: f64 = 0.005;
/// An error beyond this is no drift: the stream stood, or went on elsewhere, s.
const JUMP_S: f64 = 0.02;
/// What an answer may take more than one and a half times as long as the fastest one, ns.
const SLOWER_NS: u64 = 200_000;
/// After this time, a slow answer is better than none, ns.
const OLD_NS: u64 = 3_000_000_000;
/// How much of an error is taken in the long run.
const LEAST_GAIN: f64 = 0.05;

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    /// When it was asked for, and when it came, ns.
    pub asked_ns: u64,
    pub answered_ns: u64,
    /// The position that was heard between.
    pub position: f64,
}

/// A position that moves with time.
#[derive(Debug, Clone, Copy)]
struct Line {
    at_ns: u64,
    position: f64,
    /// Relative to the nominal rate.
    drift: f64,
    answers: u32,
}

/// Knows what is heard when, as far as it was answered.
#[derive(Debug)]
pub(crate) struct FarClock {
    rate_hz: f64,
    line: Option<Line>,
    /// How long the fastest answer took; it grows slowly, in case that ways have changed.
    fastest_ns: u64,
}

impl FarClock {
    pub(crate) fn new(rate_hz: u32) -> Self {
        Self { rate_hz: rate_hz.into(), line: None, fastest_ns: u64::MAX }
    }

    /// The stream stands, or is about to begin: what was answered is true no more.
    pub(crate) fn reset(&mut self) {
        self.line = None;
    }

    /// Takes an answer.
    pub(crate) fn answered(&mut self, answer: Answer) {
        let took_ns = answer.answered_ns.saturating_sub(answer.asked_ns);
        self.fastest_ns = took_ns.min(self.fastest_ns.saturating_add(self.fastest_ns / 64));
        let at_ns = answer.asked_ns + took_ns / 2;
        let Some(line) = self.line else { return self.begin(at_ns, answer.position) };
        let is_slow = took_ns > self.fastest_ns.saturating_add(self.fastest_ns / 2 + SLOWER_NS);
        if at_ns <= line.at_ns || (is_slow && at_ns - line.at_ns < OLD_NS) {
            return;
        }
        let seconds = (at_ns - line.at_ns) as f64 / 1e9;
        let expected = line.position + seconds * self.rate_hz * (1.0 + line.drift);
        let error = answer.position - expected;
        if error.abs() > JUMP_S * self.rate_hz {
            return self.begin(at_ns, answer.position);
        }
        let answers = line.answers.saturating_add(1);
        let gain = (2.0 / f64::from(answers + 1)).max(LEAST_GAIN);
        let faster = gain * gain / 2.0 * error / (seconds * self.rate_hz);
        // A rate needs more than a few answers.
        let drift = if answers < 8 { 0.0 } else { (line.drift + faster).clamp(-WORST, WORST) };
        let position = expected + gain * error;
        self.line = Some(Line { at_ns, position, drift, answers });
    }

    fn begin(&mut self, at_ns: u64, position: f64) {
        self.line = Some(Line { at_ns, position, drift: 0.0, answers: 1 });
    }

    /// Returns what is heard when; a clock that stands if that is not known.
    pub(crate) fn timing(&self) -> Timing {
        let Some(line) = self.line else { return Timing::default() };
        timing_at(line.at_ns, line.position, self.rate_hz * (1.0 + line.drift))
    }
}

/// Returns what a link reads of a stream whose `position` is heard at this time, and of which
/// `rate_hz` frames are heard in a second.
pub(crate) fn timing_at(at_ns: u64, position: f64, rate_hz: f64) -> Timing {
    let frame_ns = 1e9 / rate_hz;
    // A position before the first, which is heard later, as well.
    let whole = position.floor().max(0.0);
    let apart_ns = ((whole - position) * frame_ns).round() as i64;
    Timing {
        at_ns: at_ns.saturating_add_signed(apart_ns),
        device_frame: 0,
        position: whole as u64,
        until: u64::MAX,
        frame_ps: (frame_ns * 1e3).round() as u64,
        latency_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: u32 = 48_000;

    /// A clock that runs apart, and answers through a network.
    struct Far {
        drift: f64,
        number: u64,
    }

    impl Far {
        fn position(&self, at_ns: u64) -> f64 {
            (at_ns as f64 - 5e9) * f64::from(RATE_HZ) * (1.0 + self.drift) / 1e9
        }

        /// An answer to a question at this time, each way of which takes 0.2 ms, and now and then
        /// up to 20 ms more.
        fn answer(&mut self, asked_ns: u64) -> Answer {
            self.number += 1;
            let noise = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let late_ns =
                if noise.is_multiple_of(3) { noise % 20_000_000 } else { noise % 100_000 };
            let there_ns = asked_ns + 200_000 + late_ns;
            let answered_ns = there_ns + 200_000 + noise / 7 % 100_000;
            Answer { asked_ns, answered_ns, position: self.position(there_ns) }
        }
    }

    #[test]
    fn a_clock_is_known_to_a_tenth_of_a_millisecond_through_a_network() {
        for drift in [0.0, 100e-6, -300e-6] {
            let mut far = Far { drift, number: 0 };
            let mut clock = FarClock::new(RATE_HZ);
            let mut worst = 0.0_f64;
            for ask in 0..3_000_u64 {
                let now_ns = 10_000_000_000 + ask * 100_000_000;
                clock.answered(far.answer(now_ns));
                let timing = clock.timing();
                let heard = far.position(timing.at_ns);
                if ask > 300 {
                    worst = worst.max((heard - timing.position as f64).abs());
                    let rate = 1e12 / timing.frame_ps as f64 / f64::from(RATE_HZ) - 1.0;
                    assert!((rate - drift).abs() < 50e-6, "{drift}: {rate}");
                }
            }
            assert!(worst < 4.8, "{drift}: {worst} frames");
        }
    }

    #[test]
    fn a_stream_that_stood_has_another_time_at_once() {
        let mut clock = FarClock::new(RATE_HZ);
        let answer = |second: u64, position: f64| Answer {
            asked_ns: second * 1_000_000_000,
            answered_ns: second * 1_000_000_000,
            position,
        };
        assert_eq!(clock.timing().frame_ps, 0);
        clock.answered(answer(1, -480.0));
        let timing = clock.timing();
        assert_eq!((timing.position, timing.at_ns), (0, 1_010_000_000));
        clock.answered(answer(2, 1_000.5));
        let timing = clock.timing();
        assert_eq!((timing.position, timing.at_ns), (1_000, 1_999_989_583));
        clock.reset();
        assert_eq!(clock.timing(), Timing::default());
    }
}
