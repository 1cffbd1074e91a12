//! Waking at dates that follow each other, each known before the one ahead of it has come.

use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock::{self, timespec};
use crate::interrupts;

/// Sleeps until one date after the other.
///
/// Whoever sets the timer that the kernel has to look at first sets the hardware, too. In a virtual machine the host does
/// that, and meanwhile a thread that goes to sleep keeps its CPU from those that it has just woken. So there is a timer of
/// the same date, set one sleep earlier, behind the one that was the first then: when that goes off, the kernel has the
/// hardware to set in any case, and sets it for this one.
///
/// Nobody waits for such a timer. Where its date turns out to be another than foreseen, or where there is none, the sleep is
/// as long, and costs what it does without.
#[derive(Debug)]
pub struct Alarm {
    /// Set by turns.
    foreseen: Option<[OwnedFd; 2]>,
    turn: usize,
}

impl Alarm {
    /// An alarm that foresees nothing yet. Not within a cycle.
    #[must_use]
    pub fn new() -> Self {
        let timer = || timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok();
        let timers = timer().zip(timer()).map(|(first, second)| [first, second]);
        // There, a thread would have to run whenever one of these goes off.
        Self { foreseen: timers.filter(|_| !interrupts::kernel_is_preempt_rt()), turn: 0 }
    }

    /// Sleeps until `CLOCK_MONOTONIC` has reached `due_ns`; returns at once if it has already. `next_ns` is when the sleep
    /// after this one will end, as far as that is known. Thread: cycle.
    pub fn sleep_until(&mut self, due_ns: u64, next_ns: u64) {
        if let Some(timers) = &self.foreseen {
            let once = Itimerspec { it_interval: timespec(0), it_value: timespec(next_ns) };
            // If it is refused, the next sleep costs more.
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
    fn a_sleep_ends_at_its_date_whatever_was_foreseen() {
        let mut alarm = Alarm::new();
        for next_ns in [0, 1, now_ns(), now_ns() + 1_000, u64::MAX, 0] {
            let due_ns = now_ns() + 1_000_000;
            alarm.sleep_until(due_ns, next_ns);
            assert!(now_ns() >= due_ns, "{next_ns} was foreseen");
            alarm.sleep_until(0, next_ns);
        }
    }

    #[test]
    fn the_date_after_the_next_one_is_set_while_that_is_to_come() {
        let mut alarm = Alarm::new();
        alarm.sleep_until(0, now_ns() + 10 * HOUR_S * 1_000_000_000);
        alarm.sleep_until(0, now_ns() + 20 * HOUR_S * 1_000_000_000);
        // A kernel that has such timers go off in a thread is left alone.
        let Some(timers) = alarm.foreseen else { return };
        let hours = timers.map(|timer| timerfd_gettime(timer).unwrap().it_value.tv_sec as u64 / HOUR_S);
        assert_eq!(hours, [9, 19]);
    }
}
