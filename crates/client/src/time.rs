//! Frames and times. Frame counts wrap at 32 bits, as in JACK's API; times are `CLOCK_MONOTONIC`,
//! in ns.

use rt::shm::CycleInfo;
use sys::clock::now_ns;

use crate::Session;
use crate::process::current_cycle;
use crate::session::Core;

impl Core {
    /// Returns the newest cycle; `None` before the first. Between two servers, a cycle that begins
    /// where the old server's clock stood when its end was noticed. Thread: any.
    pub(crate) fn newest_cycle(&self) -> Option<CycleInfo> {
        let memory = self.memory();
        if let Some(end) = memory.end.get() {
            return Some(*end);
        }
        let info = memory.engine.info();
        // A server that replaces another and waits for its first cycle has no clock yet.
        if let Some(end) =
            self.memories.end_before().filter(|_| info.is_some_and(|info| info.cycle == 0))
        {
            return Some(end);
        }
        if let Some(info) = info {
            self.last_cycle.note(info);
            return Some(info);
        }
        self.last_cycle.get()
    }
}

/// The result of `jack_get_cycle_times`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CycleTimes {
    /// Frame count at the start of the cycle.
    pub frames: u32,
    /// Start of the cycle, in ns.
    pub current_ns: u64,
    /// Start of the next cycle, in ns.
    pub next_ns: u64,
    /// Duration of a cycle, in ns.
    pub period_ns: f64,
}

/// All methods except [`info`](Self::info) return 0 before the first cycle and in a forked child.
/// All are lock-free. Thread: any.
impl Session {
    /// Returns the newest cycle, with the server's quantum and sample rate; `None` before the
    /// first.
    pub fn info(&self) -> Option<CycleInfo> {
        if self.core().is_forked() { None } else { self.core().newest_cycle() }
    }

    /// Returns the estimated current frame.
    pub fn frame_time(&self) -> u32 {
        self.time_to_frames(now_ns())
    }

    /// Returns the cycle that the calling process thread is in; on other threads, the newest.
    #[inline]
    fn current_cycle_info(&self) -> Option<CycleInfo> {
        self.newest_if_begun().or_else(|| self.current_cycle_of_thread())
    }

    #[cold]
    fn current_cycle_of_thread(&self) -> Option<CycleInfo> {
        current_cycle().or_else(|| self.info())
    }

    /// Returns the newest cycle if the client has begun it. Its process thread is then in no other
    /// cycle, so its thread-local state, which lies on pages that no cycle should touch, need not
    /// be read.
    #[inline]
    fn newest_if_begun(&self) -> Option<CycleInfo> {
        let core = self.core();
        if core.is_forked() {
            // A child has no mapping of the server's memory, so return before reading it.
            return None;
        }
        let memory = core.memory();
        let info = memory.engine.info()?;
        // Check the end of this server: another one may have replaced it meanwhile.
        let is_current =
            memory.end.get().is_none() && info.cycle != 0 && memory.own.awake() == info.cycle;
        is_current.then_some(info)
    }

    /// Returns the frame count at the start of the current cycle.
    #[inline]
    pub fn last_frame_time(&self) -> u32 {
        self.current_cycle_info().map_or(0, |info| wrapped(info.frames))
    }

    /// Returns the number of frames since the driver woke for the current cycle.
    pub fn frames_since_cycle_start(&self) -> u32 {
        self.current_cycle_info().map_or(0, |info| info.frames_since_start(now_ns()))
    }

    /// Returns the timestamps of the current cycle; `None` before the first.
    pub fn cycle_times(&self) -> Option<CycleTimes> {
        let info = self.current_cycle_info().filter(|info| info.cycle != 0)?;
        Some(CycleTimes {
            frames: wrapped(info.frames),
            current_ns: info.wakeup_ns,
            next_ns: info.next_wakeup_ns,
            period_ns: info.period_ns,
        })
    }

    /// Returns the time of frame `frames`, in ns: of the occurrence nearest to now.
    pub fn frames_to_time(&self, frames: u32) -> u64 {
        self.info().map_or(0, |info| info.time_of(nearest(frames, info.frames)))
    }

    /// Returns the frame at a time in ns.
    pub fn time_to_frames(&self, time_ns: u64) -> u32 {
        self.info().map_or(0, |info| wrapped(info.frame_at(time_ns)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the count that programs see wraps at 32 bits")]
const fn wrapped(frames: u64) -> u32 {
    frames as u32
}

/// Returns the frame nearest to `now` whose low 32 bits are `frames`.
fn nearest(frames: u32, now: u64) -> u64 {
    let ahead = frames.wrapping_sub(wrapped(now)).cast_signed();
    now.wrapping_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_frame_count_means_the_frame_nearest_to_now() {
        const WRAP: u64 = 1 << 32;
        for (case, frames, now, expected) in [
            ("the same", 5, 5, 5),
            ("ahead", 9, 5, 9),
            ("ago", 1, 5, 1),
            ("ago, over the wrap", u32::MAX, WRAP + 5, WRAP - 1),
            ("ahead, over the wrap", 3, WRAP - 5, WRAP + 3),
            ("after many wraps", 7, 9 * WRAP + 4, 9 * WRAP + 7),
        ] {
            assert_eq!(nearest(frames, now), expected, "{case}");
        }
    }
}
