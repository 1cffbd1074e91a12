//! When the cycles of a file driver are due.

use rt::rate::duration_ns;

use crate::driver::{Channels, Driver as _, Pace, Timer, Wake};

/// The date of the next cycle where nobody can be late: so far ahead that it never comes, and that a little
/// may be added.
const NEVER_NS: u64 = u64::MAX / 2;

/// Starts cycles.
#[derive(Debug)]
pub(super) enum Clock {
    /// In real time.
    RealTime(Timer),
    /// As fast as the graph can.
    WhenDone(IdealDates),
}

/// The dates that cycles would have in real time, counted in frames from the start.
#[derive(Debug)]
pub(super) struct IdealDates {
    sample_rate_hz: u32,
    quantum: u32,
    origin_ns: u64,
    /// Frames before the cycle that has begun.
    frames: u64,
}

impl Clock {
    pub(super) fn new(pace: Pace, sample_rate_hz: u32) -> Self {
        match pace {
            Pace::RealTime => Self::RealTime(Timer::new(Channels::default(), sample_rate_hz)),
            Pace::WhenDone => {
                Self::WhenDone(IdealDates { sample_rate_hz, quantum: 0, origin_ns: 0, frames: 0 })
            }
        }
    }

    pub(super) fn pace(&self) -> Pace {
        match self {
            Self::RealTime(_) => Pace::RealTime,
            Self::WhenDone(_) => Pace::WhenDone,
        }
    }

    pub(super) fn start(&mut self, quantum: u32) -> Result<(), String> {
        match self {
            Self::RealTime(timer) => timer.start(quantum)?,
            Self::WhenDone(dates) => {
                (dates.origin_ns, dates.frames, dates.quantum) = (sys::clock::now_ns(), 0, quantum);
            }
        }
        Ok(())
    }

    /// The next cycle: when it is due, or at once. Thread: cycle.
    pub(super) fn wait(&mut self) -> Wake {
        match self {
            Self::RealTime(timer) => timer.wait(),
            Self::WhenDone(dates) => Wake::Cycle { due_ns: dates.advance(), xrun_us: None },
        }
    }

    pub(super) fn next_due_ns(&self) -> u64 {
        match self {
            Self::RealTime(timer) => timer.next_due_ns(),
            Self::WhenDone(_) => NEVER_NS,
        }
    }

    /// The cycle that begins now is due now.
    pub(super) fn resume(&mut self) {
        match self {
            Self::RealTime(timer) => timer.resume(),
            Self::WhenDone(dates) => (dates.origin_ns, dates.frames) = (sys::clock::now_ns(), 0),
        }
    }

    pub(super) fn set_quantum(&mut self, quantum: u32) {
        match self {
            Self::RealTime(timer) => timer.set_quantum(quantum),
            Self::WhenDone(dates) => dates.quantum = quantum,
        }
    }
}

impl IdealDates {
    fn advance(&mut self) -> u64 {
        self.frames += u64::from(self.quantum);
        self.origin_ns.saturating_add(duration_ns(self.frames, self.sample_rate_hz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_frames_exactly_and_a_new_quantum_counts_from_the_cycle_that_has_begun() {
        let mut dates = IdealDates { sample_rate_hz: 44_100, quantum: 441, origin_ns: 7, frames: 0 };
        assert_eq!([dates.advance(), dates.advance()], [10_000_007, 20_000_007]);
        dates.quantum = 44_100;
        assert_eq!(dates.advance(), 1_020_000_007);
        dates.quantum = 1;
        let steps: Vec<_> = (0..44_100).map(|_| dates.advance()).collect();
        assert!(steps.is_sorted());
        assert_eq!(steps.last(), Some(&2_020_000_007), "a thousand roundings do not add up");
    }
}
