//! When a device wakes, and which positions of a stream it handles then: what a program sets its
//! own timer by.

/// The wake-ups of a device, from the next one on. Times are `CLOCK_MONOTONIC`.
///
/// A program that knows it needs no signal: it fills its ring shortly before the time (or empties
/// it shortly after), so that a period of the device is nearly the whole latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Schedule {
    /// When the device wakes next, ns.
    pub wake_ns: u64,
    /// Position up to which it renders (or has recorded) then. 0 until the stream runs.
    pub until: u64,
    /// Time between the wake-ups after that one, ns.
    pub interval_ns: u64,
    /// Frames of each of these. 0 if there is none yet: the stream holds, drains or ends, or the
    /// device cannot tell. The program is kicked when that changes.
    pub interval_frames: u64,
}

/// One wake-up of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// When, ns.
    pub at_ns: u64,
    /// Position up to which the device renders (or has recorded) then.
    pub until: u64,
}

impl Schedule {
    pub(super) const WORDS: usize = 4;

    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        [self.wake_ns, self.until, self.interval_ns, self.interval_frames]
    }

    pub(super) fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [wake_ns, until, interval_ns, interval_frames] = words;
        Self { wake_ns, until, interval_ns, interval_frames }
    }

    /// Returns the first wake-up that handles more than the frames before position `done`; `None`
    /// if none is known. Thread: any.
    #[must_use]
    pub fn due(self, done: u64) -> Option<Due> {
        let Some(beyond) = done.checked_sub(self.until) else {
            return Some(Due { at_ns: self.wake_ns, until: self.until });
        };
        let later = beyond.checked_div(self.interval_frames)?.saturating_add(1);
        Some(Due {
            at_ns: self.wake_ns.saturating_add(self.interval_ns.saturating_mul(later)),
            until: self.until.saturating_add(self.interval_frames.saturating_mul(later)),
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_wake_up_that_needs_more_than_is_written_is_found() {
        let schedule = Schedule { wake_ns: 1000, until: 64, interval_ns: 500, interval_frames: 32 };
        for (done, at_ns, until) in
            [(0, 1000, 64), (63, 1000, 64), (64, 1500, 96), (95, 1500, 96), (96, 2000, 128)]
        {
            assert_eq!(schedule.due(done), Some(Due { at_ns, until }), "{done}");
        }
    }

    #[test]
    fn a_stream_that_holds_needs_only_what_it_was_told_before() {
        let held = Schedule { wake_ns: 1000, until: 64, ..Schedule::default() };
        assert_eq!(held.due(63), Some(Due { at_ns: 1000, until: 64 }));
        assert_eq!((held.due(64), Schedule::default().due(0)), (None, None));
    }

    #[test]
    fn no_schedule_overflows() {
        let schedule =
            Schedule { wake_ns: u64::MAX, until: 1, interval_ns: u64::MAX, interval_frames: 1 };
        assert_eq!(schedule.due(u64::MAX), Some(Due { at_ns: u64::MAX, until: u64::MAX }));
    }
}
