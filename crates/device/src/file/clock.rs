//! When the cycles of a file driver are due.

use rt::rate::duration_ns;

use crate::{Channels, Driver as _, Pacing, Timer, Wake};

/// Due time of the next cycle if no client can be late: far enough ahead that it never comes, and
/// that durations can be added to it.
const NEVER_NS: u64 = u64::MAX / 2;

/// Starts the cycles of a file driver.
#[derive(Debug)]
pub(super) enum Clock {
    /// In real time.
    RealTime(Timer),
    /// Without pauses, as fast as the graph finishes.
    WhenDone(NominalTimes),
}

/// The times at which cycles would be due in real time, counted in frames from the start.
#[derive(Debug)]
pub(super) struct NominalTimes {
    sample_rate_hz: u32,
    quantum: u32,
    origin_ns: u64,
    /// Frames before the current cycle.
    frames: u64,
}

impl Clock {
    pub(super) fn new(pacing: Pacing, sample_rate_hz: u32) -> Self {
        match pacing {
            Pacing::RealTime => Self::RealTime(Timer::new(Channels::default(), sample_rate_hz)),
            Pacing::WhenDone => {
                Self::WhenDone(NominalTimes { sample_rate_hz, quantum: 0, origin_ns: 0, frames: 0 })
            }
        }
    }

    pub(super) fn pacing(&self) -> Pacing {
        match self {
            Self::RealTime(_) => Pacing::RealTime,
            Self::WhenDone(_) => Pacing::WhenDone,
        }
    }

    pub(super) fn start(&mut self, quantum: u32) -> Result<(), String> {
        match self {
            Self::RealTime(timer) => timer.start(quantum)?,
            Self::WhenDone(times) => {
                (times.origin_ns, times.frames, times.quantum) = (sys::clock::now_ns(), 0, quantum);
            }
        }
        Ok(())
    }

    /// Waits for the next cycle and returns when it was due; without real time it returns at once.
    /// Thread: cycle.
    pub(super) fn wait(&mut self) -> Wake {
        match self {
            Self::RealTime(timer) => timer.wait(),
            Self::WhenDone(times) => Wake::Cycle { due_ns: times.advance(), xrun_us: None },
        }
    }

    pub(super) fn next_due_ns(&self) -> u64 {
        match self {
            Self::RealTime(timer) => timer.next_due_ns(),
            Self::WhenDone(_) => NEVER_NS,
        }
    }

    /// Makes the cycle that begins now due now.
    pub(super) fn resume(&mut self) {
        match self {
            Self::RealTime(timer) => timer.resume(),
            Self::WhenDone(times) => (times.origin_ns, times.frames) = (sys::clock::now_ns(), 0),
        }
    }

    pub(super) fn set_quantum(&mut self, quantum: u32) {
        match self {
            Self::RealTime(timer) => timer.set_quantum(quantum),
            Self::WhenDone(times) => times.quantum = quantum,
        }
    }
}

impl NominalTimes {
    fn advance(&mut self) -> u64 {
        self.frames += u64::from(self.quantum);
        self.origin_ns.saturating_add(duration_ns(self.frames, self.sample_rate_hz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_follow_the_frame_count_exactly() {
        let mut times =
            NominalTimes { sample_rate_hz: 44_100, quantum: 441, origin_ns: 7, frames: 0 };
        assert_eq!([times.advance(), times.advance()], [10_000_007, 20_000_007]);
        times.quantum = 44_100;
        assert_eq!(times.advance(), 1_020_000_007);
        times.quantum = 1;
        let steps: Vec<_> = (0..44_100).map(|_| times.advance()).collect();
        assert!(steps.is_sorted());
        assert_eq!(steps.last(), Some(&2_020_000_007), "a thousand roundings do not add up");
    }
}
