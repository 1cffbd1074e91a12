//! Frames and dates. Frame counts wrap at 32 bits, as programs know them; dates are `CLOCK_MONOTONIC`.

use std::sync::Mutex;

use rt::shm::CycleInfo;
use sys::clock::now_ns;

use crate::Session;
use crate::process::current_cycle;
use crate::session::Core;

/// The last cycle that could be read, for when the server is stopped in the middle of stating the next. Never waited
/// for: where it is being changed, the newest cycle is known anyway.
#[derive(Debug, Default)]
pub(crate) struct LastCycle(Mutex<Option<CycleInfo>>);

impl Core {
    /// The newest cycle; `None` before the first. Between two servers: one that begins where the first one's clock
    /// was when it was found to be gone. Thread: any.
    pub(crate) fn newest_cycle(&self) -> Option<CycleInfo> {
        let link = self.link();
        if let Some(end) = link.end.get() {
            return Some(*end);
        }
        let info = link.engine.info();
        // A server that takes another's place and waits for its first cycle has no clock yet.
        if let Some(end) = self.links.end_before().filter(|_| info.is_some_and(|info| info.cycle == 0)) {
            return Some(end);
        }
        if let Some(info) = info {
            if let Ok(mut last) = self.last_cycle.0.try_lock() {
                *last = Some(info);
            }
            return Some(info);
        }
        self.last_cycle.0.try_lock().ok().and_then(|last| *last)
    }
}

/// What `jack_get_cycle_times` tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CycleTimes {
    /// Frame count at the cycle's begin.
    pub frames: u32,
    /// When it began, ns.
    pub current_ns: u64,
    /// When the next one begins, ns.
    pub next_ns: u64,
    /// A cycle's duration, ns.
    pub period_ns: f64,
}

/// All but [`info`](Self::info) answer 0 before the first cycle and in a forked child. Lock-free. Thread: any.
impl Session {
    /// The newest cycle; `None` before the first. Its quantum and rate are the server's.
    pub fn info(&self) -> Option<CycleInfo> {
        if self.core().is_forked() { None } else { self.core().newest_cycle() }
    }

    /// The frame that passes now, estimated.
    pub fn frame_time(&self) -> u32 {
        self.time_to_frames(now_ns())
    }

    /// The cycle that the calling process thread is in; on other threads, the newest.
    #[inline]
    fn current(&self) -> Option<CycleInfo> {
        self.begun().or_else(|| self.current_of_thread())
    }

    #[cold]
    fn current_of_thread(&self) -> Option<CycleInfo> {
        current_cycle().or_else(|| self.info())
    }

    /// The newest cycle, if the client has begun it: then its process thread is in no other, and what that keeps, on
    /// pages that no cycle should touch, need not be asked.
    #[inline]
    fn begun(&self) -> Option<CycleInfo> {
        let core = self.core();
        if core.is_forked() {
            // Before the link's memory, which a child does not have.
            return None;
        }
        let link = core.link();
        let info = link.engine.info()?;
        // By the link's own end: another may have taken its place meanwhile.
        let is_current = link.end.get().is_none() && info.cycle != 0 && link.own.awake() == info.cycle;
        is_current.then_some(info)
    }

    /// Frame count at the begin of the current cycle.
    #[inline]
    pub fn last_frame_time(&self) -> u32 {
        self.current().map_or(0, |info| wrapped(info.frames))
    }

    /// Frames since the driver woke for the current cycle.
    pub fn frames_since_cycle_start(&self) -> u32 {
        self.current().map_or(0, |info| info.frames_since_start(now_ns()))
    }

    /// The current cycle's dates; `None` before the first one.
    pub fn cycle_times(&self) -> Option<CycleTimes> {
        let info = self.current().filter(|info| info.cycle != 0)?;
        Some(CycleTimes {
            frames: wrapped(info.frames),
            current_ns: info.wakeup_ns,
            next_ns: info.next_wakeup_ns,
            period_ns: info.period_ns,
        })
    }

    /// When frame `frames` passes or passed, ns: the one that is nearest to now.
    pub fn frames_to_time(&self, frames: u32) -> u64 {
        self.info().map_or(0, |info| info.date_of(nearest(frames, info.frames)))
    }

    /// The frame that passes at `date_ns`.
    pub fn time_to_frames(&self, date_ns: u64) -> u32 {
        self.info().map_or(0, |info| wrapped(info.frame_at(date_ns)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the count that programs see wraps at 32 bits")]
const fn wrapped(frames: u64) -> u32 {
    frames as u32
}

/// The frame with the low 32 bits `frames` that is nearest to `now`.
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
