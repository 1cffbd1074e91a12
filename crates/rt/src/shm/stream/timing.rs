//! Which frame of a stream is heard when.

/// One point of the relation between a stream's positions, a device's frames and
/// `CLOCK_MONOTONIC`, and how it continues.
///
/// A frame is heard when it leaves the converter and whatever delay is known behind it; a recorded
/// frame was heard when it entered there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// When [`device_frame`](Self::device_frame) is heard, ns.
    pub at_ns: u64,
    /// A frame of the device.
    pub device_frame: u64,
    /// The stream's position at that frame.
    pub position: u64,
    /// The position where the stream stops, or continues elsewhere: nothing is known beyond it.
    /// At most [`position`](Self::position) while the stream holds.
    pub until: u64,
    /// How long a frame of the device lasts, as measured, ps. 0: the device's clock stands.
    pub frame_ps: u64,
    /// Time from a frame's rendering to its being heard (recorded: from being heard to its being in
    /// the ring), with everything in it, ns.
    pub latency_ns: u64,
}

const PS_PER_NS: u128 = 1000;

impl Timing {
    pub(super) const WORDS: usize = 6;

    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        [self.at_ns, self.device_frame, self.position, self.until, self.frame_ps, self.latency_ns]
    }

    pub(super) fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [at_ns, device_frame, position, until, frame_ps, latency_ns] = words;
        Self { at_ns, device_frame, position, until, frame_ps, latency_ns }
    }

    /// Returns the position that is heard at `time_ns`. Thread: any.
    #[must_use]
    pub fn position_at(self, time_ns: u64) -> u64 {
        if self.until <= self.position {
            return self.position;
        }
        self.moved(self.position, time_ns).min(self.until)
    }

    /// Returns the device's frame that is heard at `time_ns`. Thread: any.
    #[must_use]
    pub fn device_frame_at(self, time_ns: u64) -> u64 {
        self.moved(self.device_frame, time_ns)
    }

    /// Returns when `position` is heard, ns; `None` if that is not known. Thread: any.
    #[must_use]
    pub fn time_of(self, position: u64) -> Option<u64> {
        if position >= self.until || self.frame_ps == 0 {
            return None;
        }
        let lasts = |frames: u64| {
            let ns = u128::from(frames) * u128::from(self.frame_ps) / PS_PER_NS;
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        Some(match position.checked_sub(self.position) {
            Some(ahead) => self.at_ns.saturating_add(lasts(ahead)),
            None => self.at_ns.saturating_sub(lasts(self.position - position)),
        })
    }

    /// Returns what `frame`, which is heard at `at_ns`, has become at `time_ns`.
    fn moved(self, frame: u64, time_ns: u64) -> u64 {
        let frames = |ns: u64| {
            let frames = (u128::from(ns) * PS_PER_NS).checked_div(u128::from(self.frame_ps));
            u64::try_from(frames.unwrap_or(0)).unwrap_or(u64::MAX)
        };
        match time_ns.checked_sub(self.at_ns) {
            Some(later) => frame.saturating_add(frames(later)),
            None => frame.saturating_sub(frames(self.at_ns - time_ns)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// 50 kHz, so that a frame is 20 µs.
    const RUNNING: Timing = Timing {
        at_ns: 1_000_000,
        device_frame: 500,
        position: 100,
        until: 110,
        frame_ps: 20_000_000,
        latency_ns: 0,
    };

    #[test]
    fn positions_are_heard_one_frame_after_the_other_up_to_the_end() {
        for (time_ns, position, frame) in [
            (1_000_000, 100, 500),
            (1_019_999, 100, 500),
            (1_020_000, 101, 501),
            (980_000, 99, 499),
            (2_000_000, 110, 550),
            (0, 50, 450),
        ] {
            assert_eq!(RUNNING.position_at(time_ns), position, "{time_ns}");
            assert_eq!(RUNNING.device_frame_at(time_ns), frame, "{time_ns}");
        }
        assert_eq!(RUNNING.time_of(109), Some(1_180_000));
        assert_eq!(RUNNING.time_of(99), Some(980_000));
        assert_eq!(RUNNING.time_of(110), None, "nothing is known beyond the end");
    }

    #[test]
    fn a_stream_that_holds_stays_at_its_position() {
        let held = Timing { until: 100, ..RUNNING };
        assert_eq!((held.position_at(0), held.position_at(u64::MAX)), (100, 100));
        assert_eq!((held.time_of(100), held.device_frame_at(1_020_000)), (None, 501));
        let stands = Timing { frame_ps: 0, ..RUNNING };
        assert_eq!((stands.position_at(u64::MAX), stands.time_of(105)), (100, None));
    }

    #[test]
    fn no_time_overflows() {
        let timing = Timing { position: u64::MAX - 1, until: u64::MAX, frame_ps: 1, ..RUNNING };
        assert_eq!(timing.position_at(u64::MAX), u64::MAX);
        let slow = Timing { until: u64::MAX, frame_ps: u64::MAX, ..RUNNING };
        assert_eq!(slow.time_of(1 << 40), Some(u64::MAX));
    }
}
