//! Sleeps until consecutive times, each known before the previous one has come.

use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock::{self, timespec};
use crate::interrupts;

/// Sleeps until one time after the other.
///
/// A thread that arms the timer that fires next also programs the hardware. In a virtual machine
/// the host does that, and meanwhile the thread that goes to sleep keeps its CPU from the threads
/// that it has just woken. So a timer for the same time is armed one sleep earlier, behind the one
/// that fires next: when that one fires, the kernel programs the hardware in any case, and does so
/// for this one.
///
/// No thread waits for such a timer. If the prediction was wrong, or there is no timer, the sleep
/// is just as long, but costs more.
#[derive(Debug)]
pub struct Alarm {
    /// Timers for predicted sleeps, used in turn.
    early_timers: Option<[OwnedFd; 2]>,
    turn: usize,
}

impl Alarm {
    /// Returns an alarm without a prediction. Not within a cycle.
    #[must_use]
    pub fn new() -> Self {
        let timer = || timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok();
        let timers = timer().zip(timer()).map(|(first, second)| [first, second]);
        // Such a kernel would have to run a thread whenever one of these fires.
        Self { early_timers: timers.filter(|_| !interrupts::kernel_is_preempt_rt()), turn: 0 }
    }

    /// Sleeps until `CLOCK_MONOTONIC` has reached `due_ns`; returns at once if it has already.
    /// `next_ns` is when the sleep after this one will end, as far as that is known. Thread: cycle.
    pub fn sleep_until(&mut self, due_ns: u64, next_ns: u64) {
        if let Some(timers) = &self.early_timers {
            let once = Itimerspec { it_interval: timespec(0), it_value: timespec(next_ns) };
            // If this fails, the next sleep costs more.
            let _ = timerfd_settime(&timers[self.turn], TimerfdTimerFlags::ABSTIME, &once);
            self.turn = 1 - self.turn;
        }
        clock::sleep_until(due_ns);
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use rustix::time::timerfd_gettime;

    use super::*;
    use crate::clock::now_ns;

    const HOUR_S: u64 = 3600;

    #[test]
    fn a_sleep_ends_at_its_due_time_whatever_was_predicted() {
        let mut alarm = Alarm::new();
        for next_ns in [0, 1, now_ns(), now_ns() + 1_000, u64::MAX, 0] {
            let due_ns = now_ns() + 1_000_000;
            alarm.sleep_until(due_ns, next_ns);
            assert!(now_ns() >= due_ns, "{next_ns} was predicted");
            alarm.sleep_until(0, next_ns);
        }
    }

    #[test]
    fn the_timer_for_the_sleep_after_next_is_armed_early() {
        let mut alarm = Alarm::new();
        alarm.sleep_until(0, now_ns() + 10 * HOUR_S * 1_000_000_000);
        alarm.sleep_until(0, now_ns() + 20 * HOUR_S * 1_000_000_000);
        // A kernel that runs such timers in a thread is left alone.
        let Some(timers) = alarm.early_timers else { return };
        let hours =
            timers.map(|timer| timerfd_gettime(timer).unwrap().it_value.tv_sec as u64 / HOUR_S);
        assert_eq!(hours, [9, 19]);
    }
}
