//! When the ring is filled next. Pure.

use client::stream::Schedule;

/// The longest wait for the next look where the device does not say when it needs more: it has not
/// begun to play.
const UNKNOWN_NS: u64 = 100_000_000;
/// How long after the device's wake-up a ring has room again.
const AFTER_WAKE_NS: u64 = 2_000_000;
/// The shortest sleep: a device that is late makes no program spin.
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
    let room_ns = if has_room { 0 } else { wake_ns.saturating_add(AFTER_WAKE_NS) };
    due.at_ns.saturating_sub(lead_ns).max(room_ns).max(now_ns + LEAST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

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
