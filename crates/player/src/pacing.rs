//! How much is queued, and when the ring is filled next. Pure.

use std::time::Duration;

use client::stream::Schedule;

/// Below this, a latency is how long a frame that is written takes to be heard; from there on, how
/// far ahead the device renders, of a ring that is kept full.
const LONG: Duration = Duration::from_millis(200);

/// Up to this latency, ns, a program has little time to write, so that it wakes no more often than
/// the device; beyond, it has more, which other programs on its CPU may take.
const TIGHT_NS: u64 = 20_000_000;

/// A device may be late by this part of the latency.
const LATE_PART: u64 = 25;

fn least_lead_ns(latency_ns: u64) -> u64 {
    latency_ns / 10 + latency_ns.saturating_sub(TIGHT_NS) / 6
}

/// What follows from a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pacing {
    /// How far ahead the device may render, ns.
    pub depth_ns: u64,
    /// How long before the device needs more frames they are written, ns.
    pub lead_ns: u64,
    /// The most that is written and not heard yet, ns; `None`: as much as the ring holds.
    pub queue_ns: Option<u64>,
    /// The worst lateness of the program's own wake-ups, ns, which is slowly forgotten.
    worst_ns: u64,
}

impl Pacing {
    /// Returns that of a latency.
    pub(crate) fn new(latency: Duration) -> Self {
        let latency_ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if latency >= LONG {
            // Whatever other streams and the graph make of the device's schedule, half is there
            // beyond what it has rendered.
            let lead_ns = latency_ns / 2;
            return Self { depth_ns: latency_ns, lead_ns, queue_ns: None, worst_ns: 0 };
        }
        Self { depth_ns: 0, lead_ns: 0, queue_ns: Some(latency_ns), worst_ns: 0 }
            .leading(latency_ns, least_lead_ns(latency_ns))
    }

    fn leading(mut self, latency_ns: u64, lead_ns: u64) -> Self {
        // A device that wakes a little late renders that much more, and must not find it missing.
        let late_ns = latency_ns / LATE_PART;
        (self.depth_ns, self.lead_ns) = (latency_ns - lead_ns - late_ns, lead_ns);
        self
    }

    /// Notes how late the program has woken to write. Returns whether the depth is another one from
    /// now on: a program that is kept from its CPU writes earlier, and the latency stays as it is.
    pub(crate) fn note_lateness(&mut self, late_ns: u64) -> bool {
        let Some(latency_ns) = self.queue_ns else { return false };
        self.worst_ns = (self.worst_ns - self.worst_ns / 64).max(late_ns);
        let least_ns = least_lead_ns(latency_ns);
        let lead_ns = (2 * self.worst_ns).clamp(least_ns, (latency_ns / 2).max(least_ns));
        let is_settled = (self.lead_ns / 2..=self.lead_ns).contains(&lead_ns);
        if !is_settled {
            *self = self.leading(latency_ns, lead_ns);
        }
        !is_settled
    }

    /// Returns whether frames are written shortly before they are heard.
    pub(crate) fn is_short(self) -> bool {
        self.queue_ns.is_some()
    }

    /// Returns how far ahead the device may render, frames.
    pub(crate) fn depth_frames(self, rate_hz: u32) -> u32 {
        let frames = u128::from(self.depth_ns) * u128::from(rate_hz) / 1_000_000_000;
        u32::try_from(frames).unwrap_or(u32::MAX).max(1)
    }

    /// Returns how many frames may be written beyond `written`, while `heard` is heard.
    pub(crate) fn room(self, rate_hz: u32, written: u64, heard: u64) -> usize {
        let Some(queue_ns) = self.queue_ns else { return usize::MAX };
        let most = queue_ns.saturating_mul(rate_hz.into()) / 1_000_000_000;
        usize::try_from(heard.saturating_add(most).saturating_sub(written)).unwrap_or(usize::MAX)
    }
}

/// The longest wait for the next look where the device does not say when it needs more: it has not
/// begun to play.
const UNKNOWN_NS: u64 = 100_000_000;
/// How long after the device's wake-up a ring has room again.
const AFTER_WAKE_NS: u64 = 2_000_000;
/// The shortest sleep, at most: a device that is late makes no program spin.
const LEAST_NS: u64 = 5_000_000;

/// Returns when to write, if frames up to `written` are there: `lead_ns` before the device needs
/// more than these, and if the ring has no room, not before the device has made some.
pub(crate) fn next_write_ns(
    schedule: Option<Schedule>,
    written: u64,
    has_room: bool,
    lead_ns: u64,
    now_ns: u64,
) -> u64 {
    let due = schedule.and_then(|schedule| Some((schedule.wake_ns, schedule.due(written)?)));
    let Some((wake_ns, due)) = due else {
        // By then, what is there may have been taken up.
        return now_ns + lead_ns.clamp(LEAST_NS, UNKNOWN_NS);
    };
    let least_ns = LEAST_NS.min(2 * lead_ns).max(1_000_000);
    let room_ns = if has_room { 0 } else { wake_ns.saturating_add(AFTER_WAKE_NS) };
    due.at_ns.saturating_sub(lead_ns).max(room_ns).max(now_ns + least_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_latency_is_what_is_queued_and_a_long_one_what_is_rendered() {
        let short = Pacing::new(Duration::from_millis(20));
        assert!(short.depth_ns + short.lead_ns < 20_000_000, "{short:?}");
        assert_eq!(short.room(48_000, 5000, 4500), 460);
        assert_eq!(short.room(48_000, 5460, 4500), 0);
        assert_eq!(short.room(48_000, 6000, 4500), 0);
        let long = Pacing::new(Duration::from_secs(2));
        assert_eq!((long.depth_ns, long.room(48_000, 5000, 0)), (2_000_000_000, usize::MAX));
    }

    #[test]
    fn a_program_that_wakes_late_writes_earlier_within_the_same_latency() {
        const MS_NS: u64 = 1_000_000;
        let mut pacing = Pacing::new(Duration::from_millis(20));
        let begun = pacing;
        assert!(!pacing.note_lateness(MS_NS) && pacing.lead_ns == begun.lead_ns);
        assert!(pacing.note_lateness(3 * MS_NS));
        assert_eq!((pacing.lead_ns, pacing.depth_ns), (6 * MS_NS, 20 * MS_NS * 66 / 100));
        assert!(pacing.note_lateness(100 * MS_NS));
        assert_eq!(pacing.lead_ns, 10 * MS_NS, "half at most");
        assert!((0..1000).any(|_| pacing.note_lateness(0)));
        assert!((0..1000).any(|_| pacing.note_lateness(0)));
        assert!(pacing.lead_ns < 2 * begun.lead_ns, "{pacing:?}");
        assert!(pacing.depth_ns + pacing.lead_ns < 20 * MS_NS, "{pacing:?}");
        assert!(!Pacing::new(Duration::from_secs(2)).note_lateness(100 * MS_NS));
    }

    #[test]
    fn the_ring_is_filled_before_the_wake_up_that_needs_more() {
        const SECOND_NS: u64 = 1_000_000_000;
        let schedule = Some(Schedule {
            wake_ns: 10 * SECOND_NS,
            until: 200_000,
            interval_ns: 2 * SECOND_NS,
            interval_frames: 96_000,
        });
        let next = |written, has_room, now_ns| {
            next_write_ns(schedule, written, has_room, SECOND_NS, now_ns)
        };
        assert_eq!(next(199_999, true, 0), 9 * SECOND_NS);
        assert_eq!(next(199_999, false, 0), 10 * SECOND_NS + AFTER_WAKE_NS);
        assert_eq!(next(250_000, false, 0), 11 * SECOND_NS, "the wake-up after that");
        assert_eq!(next(0, false, 11 * SECOND_NS), 11 * SECOND_NS + LEAST_NS, "it is late");
        for schedule in [Some(Schedule::default()), None] {
            let next = |lead_ns| next_write_ns(schedule, 5, true, lead_ns, 7) - 7;
            assert_eq!(next(SECOND_NS), UNKNOWN_NS);
            assert_eq!(next(20_000_000), 20_000_000, "a short ring would have run empty");
            assert_eq!(next(0), LEAST_NS);
        }
    }
}
