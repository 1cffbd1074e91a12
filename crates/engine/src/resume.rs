//! The frame clock of a server that replaces another: it continues where the clients are.

use proto::limits::SAMPLE_RATE_HZ;
use rt::rate::frames_in;
use rt::shm::Snapshot;

/// A frame and when it passed, left by the control thread for the driver thread.
#[derive(Debug, Default)]
pub struct Resume(Snapshot<3>);

impl Resume {
    /// Sets the frame clock forward, so that frame `frames` passed at `at_ns` at the latest.
    /// `count` grows with each call. Control thread.
    pub fn leave(&self, frames: u64, at_ns: u64, count: u32) {
        self.0.write(&[frames, at_ns, u64::from(count)]);
    }

    /// The frame that passes at `time_ns` by the last call of [`leave`](Self::leave), if `seen`
    /// says that it is new. Thread: cycle.
    pub fn frame_at(&self, time_ns: u64, sample_rate_hz: u32, seen: &mut u32) -> Option<u64> {
        // While it is being written, it waits for the next cycle.
        let [frames, at_ns, count] = self.0.read()?;
        let count = u32::try_from(count).ok().filter(|count| count != seen)?;
        *seen = count;
        Some(frame_after(frames, at_ns, time_ns, sample_rate_hz))
    }
}

/// The frame that passes at `time_ns`, if `frames` passed at `at_ns`.
pub fn frame_after(frames: u64, at_ns: u64, time_ns: u64, sample_rate_hz: u32) -> u64 {
    frames.saturating_add(frames_in(time_ns.saturating_sub(at_ns), sample_rate_hz))
}

/// Whether frame `frames` can have passed at `at_ns`, as judged at `now_ns`: no server counts
/// faster than at the highest rate since the machine started.
pub fn is_plausible(frames: u64, at_ns: u64, now_ns: u64) -> bool {
    at_ns <= now_ns && frames <= frames_in(at_ns, *SAMPLE_RATE_HZ.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_set_once_for_each_client_that_left_a_frame() {
        let (resume, mut seen) = (Resume::default(), 0);
        assert_eq!(resume.frame_at(5, 48_000, &mut seen), None);
        resume.leave(1_000, 2_000_000_000, 1);
        assert_eq!(resume.frame_at(3_000_000_000, 48_000, &mut seen), Some(49_000));
        assert_eq!(
            resume.frame_at(3_100_000_000, 48_000, &mut seen),
            None,
            "it runs by itself from then on"
        );
        resume.leave(1_000, 2_000_000_000, 2);
        assert_eq!(
            resume.frame_at(1_000_000_000, 48_000, &mut seen),
            Some(1_000),
            "an earlier time does not set it back"
        );
    }

    #[test]
    fn a_frame_that_cannot_have_passed_is_implausible() {
        for (case, frames, at_ns, plausible) in [
            ("a second after the machine's start", 48_000, 1_000_000_000, true),
            ("too many", 768_001, 1_000_000_000, false),
            ("the most that there can be", u64::MAX, u64::MAX, false),
            ("to come", 0, 2_000_000_001, false),
        ] {
            assert_eq!(is_plausible(frames, at_ns, 2_000_000_000), plausible, "{case}");
        }
    }
}
