//! The frame clock: a delay-locked loop that smooths the driver's wake-ups, and conversions between
//! frames and time.
//!
//! Source: F. Adriaensen, "Using a DLL to filter time", Linux Audio Conference 2005.

use crate::rate::frames_in;
use crate::shm::CycleInfo;

/// Second-order loop over the measured times of wake-ups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dll {
    /// Estimated start of the next cycle, in ns after `origin_ns`.
    next: f64,
    /// Estimated duration of a cycle, ns.
    period: f64,
    origin_ns: u64,
    b: f64,
    c: f64,
}

/// Bandwidth of the loop, the same as JACK's, since programs expect its smoothness.
const BANDWIDTH_HZ: f64 = 0.125;
const NS_PER_SECOND: f64 = 1e9;
const SQRT_2: f64 = core::f64::consts::SQRT_2;

impl Dll {
    /// Creates a loop locked to a first wake-up at `now_ns`, for cycles of `period_ns`.
    #[must_use]
    pub fn locked_at(now_ns: u64, period_ns: f64) -> Self {
        let omega = core::f64::consts::TAU * BANDWIDTH_HZ * period_ns / NS_PER_SECOND;
        Self {
            next: period_ns,
            period: period_ns,
            origin_ns: now_ns,
            b: SQRT_2 * omega,
            c: omega * omega,
        }
    }

    /// Takes the measured time of a wake-up; returns the estimated starts of this cycle and of the
    /// next one. Thread: cycle.
    pub fn update(&mut self, now_ns: u64) -> (u64, u64) {
        let error = signed_difference(now_ns, self.origin_ns) - self.next;
        let begin = self.next;
        self.next += self.b * error + self.period;
        self.period += self.c * error;
        // Keeps `next` small, so that the loop loses no precision over months.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "durations of cycles, never negative"
        )]
        let whole = begin.max(0.0) as u64;
        self.origin_ns = self.origin_ns.wrapping_add(whole);
        #[expect(clippy::cast_precision_loss, reason = "a cycle's nanoseconds fit 53 bits")]
        let shift = whole as f64;
        self.next -= shift;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as above")]
        let ahead = self.next.max(1.0) as u64;
        (self.origin_ns, self.origin_ns.wrapping_add(ahead))
    }

    /// Returns the estimated duration of a cycle, ns.
    #[must_use]
    pub fn period_ns(&self) -> f64 {
        self.period
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "differences of times within minutes"
)]
fn signed_difference(left: u64, right: u64) -> f64 {
    left.wrapping_sub(right) as i64 as f64
}

/// Rounds half away from zero. `core` has no such function for floats.
#[expect(clippy::cast_possible_truncation, reason = "saturates, which is right for distant times")]
fn rounded(value: f64) -> i64 {
    (if value < 0.0 { value - 0.5 } else { value + 0.5 }) as i64
}

impl CycleInfo {
    fn frames_per_ns(&self) -> f64 {
        let duration = signed_difference(self.next_wakeup_ns, self.wakeup_ns);
        if duration > 0.0 { f64::from(self.quantum) / duration } else { 0.0 }
    }

    /// Returns the frame at `time_ns`, like `jack_time_to_frames`. Thread: any.
    #[must_use]
    pub fn frame_at(&self, time_ns: u64) -> u64 {
        let offset = signed_difference(time_ns, self.wakeup_ns) * self.frames_per_ns();
        self.frames.wrapping_add_signed(rounded(offset))
    }

    /// Returns the time of frame `frames`, `CLOCK_MONOTONIC` ns, like `jack_frames_to_time`.
    /// Thread: any.
    #[must_use]
    pub fn time_of(&self, frames: u64) -> u64 {
        let rate = self.frames_per_ns();
        if rate <= 0.0 {
            return self.wakeup_ns;
        }
        self.wakeup_ns.wrapping_add_signed(rounded(signed_difference(frames, self.frames) / rate))
    }

    /// Returns the frames since the driver woke, like `jack_frames_since_cycle_start`. Thread: any.
    #[must_use]
    pub fn frames_since_start(&self, now_ns: u64) -> u32 {
        let elapsed_ns = now_ns.saturating_sub(self.woken_ns);
        u32::try_from(frames_in(elapsed_ns, self.sample_rate_hz)).unwrap_or(u32::MAX)
    }

    /// Returns the length of a cycle at the nominal rate, ns.
    #[must_use]
    pub fn nominal_period_ns(quantum: u32, sample_rate_hz: u32) -> f64 {
        f64::from(quantum) * NS_PER_SECOND / f64::from(sample_rate_hz.max(1))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const PERIOD_NS: f64 = 1_333_333.333;

    #[test]
    fn jittering_wake_ups_give_a_smooth_clock_that_keeps_their_rate() {
        let start = 1_000_000_000_000;
        let mut dll = Dll::locked_at(start, PERIOD_NS);
        let (mut previous, mut worst) = (start, 0.0_f64);
        for cycle in 1..20_000_u32 {
            let ideal = start + (f64::from(cycle) * PERIOD_NS) as u64;
            let jitter = u64::from(cycle.wrapping_mul(2_654_435_761) >> 16) % 100_000;
            let (begin, next) = dll.update(ideal + jitter);
            assert!(begin > previous && next > begin, "monotone");
            if cycle > 15_000 {
                worst = worst.max((signed_difference(begin, previous) - PERIOD_NS).abs());
            }
            previous = begin;
        }
        assert!(worst < 2_000.0, "100 µs of jitter leave at most 2 µs: {worst} ns");
        assert!((dll.period_ns() - PERIOD_NS).abs() < 100.0);
    }

    #[test]
    fn frames_and_time_are_inverse_to_each_other() {
        let info = CycleInfo {
            quantum: 64,
            sample_rate_hz: 48_000,
            frames: 6_400,
            woken_ns: 2_000_000_100,
            wakeup_ns: 2_000_000_000,
            next_wakeup_ns: 2_001_333_333,
            ..CycleInfo::default()
        };
        for frame in [0, 6_399, 6_400, 6_463, 6_464, 1_000_000] {
            assert_eq!(info.frame_at(info.time_of(frame)), frame);
        }
        assert_eq!(info.frame_at(2_000_000_000), 6_400);
        assert_eq!(info.frames_since_start(2_001_000_100), 48);
        assert_eq!(info.frames_since_start(0), 0, "a clock that is behind");
    }

    #[test]
    fn a_clock_without_any_cycle_divides_by_nothing() {
        let info = CycleInfo::default();
        assert_eq!((info.frame_at(5), info.time_of(5)), (0, 0));
    }
}
