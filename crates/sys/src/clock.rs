//! `CLOCK_MONOTONIC`, the only clock for cycles and deadlines.

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::Timespec;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Returns `CLOCK_MONOTONIC` in nanoseconds. No system call where the vDSO serves it; callable
/// inside a cycle.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Reads one of the clocks that every kernel has.
///
/// Uses the C library: rustix takes the vDSO from where the kernel announces it, and valgrind,
/// under which programs are tested, removes that announcement.
#[inline]
pub(crate) fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the caller's own `timespec`, writable and alive for the whole call.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(read, 0, "clock {clock}");
    // These clocks are never negative.
    time.tv_sec as u64 * NS_PER_SECOND + time.tv_nsec as u64
}

/// Sleeps until `CLOCK_MONOTONIC` has reached `deadline_ns`; returns at once if it has already.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    while clock_nanosleep_absolute(SleepClock::Monotonic, &deadline) == Err(rustix::io::Errno::INTR)
    {
    }
}

/// Returns the time left until `deadline_ns`, for the calls that only accept relative timeouts.
pub(crate) fn remaining(deadline_ns: Option<u64>) -> Option<Timespec> {
    deadline_ns.map(|deadline_ns| timespec(deadline_ns.saturating_sub(now_ns())))
}

pub(crate) fn has_passed(deadline_ns: Option<u64>) -> bool {
    deadline_ns.is_some_and(|deadline_ns| now_ns() >= deadline_ns)
}

pub(crate) fn timespec(ns: u64) -> Timespec {
    // Both casts hold for any u64: 2^64 ns is 1.8e10 s, which no field is too narrow for but a
    // 32-bit one, and rustix has 64-bit fields on every target.
    Timespec { tv_sec: (ns / NS_PER_SECOND) as _, tv_nsec: (ns % NS_PER_SECOND) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_does_not_end_before_its_deadline() {
        let deadline_ns = now_ns() + 2_000_000;
        sleep_until(deadline_ns);
        assert!(now_ns() >= deadline_ns);
    }

    #[test]
    fn a_deadline_in_the_past_does_not_sleep() {
        sleep_until(0);
        assert_eq!(remaining(Some(0)), Some(timespec(0)));
        assert!(has_passed(Some(0)));
    }

    #[test]
    fn no_deadline_never_passes() {
        assert!(!has_passed(None));
        assert_eq!(remaining(None), None);
    }

    #[test]
    fn a_timespec_has_all_of_its_nanoseconds() {
        for ns in [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, u64::MAX] {
            let Timespec { tv_sec, tv_nsec } = timespec(ns);
            assert_eq!(tv_sec as u64 * NS_PER_SECOND + tv_nsec as u64, ns);
        }
    }
}
