//! Notices that the machine slept: `CLOCK_MONOTONIC` stands meanwhile, so nothing that waits for
//! it does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock::{read_ns, timespec};

/// A sleep that is shorter cannot be told from the two clocks being read one after the other, ns.
const LEAST_NS: u64 = 10_000_000;
/// When the timer would fire, `CLOCK_REALTIME` ns: in the year 2200.
const NEVER_NS: u64 = 7_258_118_400_000_000_000;

/// Readable once the machine has slept, and when the system's time was set.
#[derive(Debug)]
pub struct MachineSleep {
    /// The kernel cancels it when `CLOCK_REALTIME` is no longer as far from `CLOCK_MONOTONIC`.
    timer: OwnedFd,
    /// For how long the machine has slept since it was started, as far as that is known.
    slept_ns: u64,
}

impl MachineSleep {
    /// Notices from now on.
    ///
    /// # Errors
    /// The errors of `timerfd_create`: no descriptor or memory left.
    pub fn watch() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
        let never = Itimerspec { it_interval: timespec(0), it_value: timespec(NEVER_NS) };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&timer, flags, &never)?;
        Ok(Self { timer, slept_ns: slept_ns() })
    }

    /// Takes all news; returns for how long the machine has slept since the last call, ns. `None`:
    /// it has not, or for some milliseconds.
    pub fn take(&mut self) -> Option<u64> {
        // Fails with ECANCELED, which is the news, or with WOULDBLOCK.
        let _ = retry_on_intr(|| rustix::io::read(&self.timer, &mut [0; 8]));
        let before_ns = std::mem::replace(&mut self.slept_ns, slept_ns());
        Some(self.slept_ns.saturating_sub(before_ns)).filter(|slept_ns| *slept_ns >= LEAST_NS)
    }
}

impl AsFd for MachineSleep {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// Returns for how long the machine has slept since it was started, and at most as much more as
/// passes here, ns.
fn slept_ns() -> u64 {
    let awake_ns = read_ns(libc::CLOCK_MONOTONIC);
    read_ns(libc::CLOCK_BOOTTIME).saturating_sub(awake_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Interest, Poller};

    #[test]
    fn a_machine_that_is_awake_has_no_news() {
        let (mut sleep, poller) = (MachineSleep::watch().unwrap(), Poller::new().unwrap());
        poller.add(&sleep, 1, Interest::Readable).unwrap();
        let mut events = Vec::new();
        poller.wait(&mut events, Some(crate::clock::now_ns() + 20_000_000)).unwrap();
        assert_eq!((events, sleep.take()), (vec![], None));
    }
}
