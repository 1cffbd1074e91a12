//! How often the control thread looks at what no event reports: timeouts, and what cycles recorded.

use rt::shm::RECORDS;

/// The longest time between two polls while something may be due.
pub(super) const TICK_NS: u64 = 40_000_000;
/// The longest time between two polls while cycles run and nothing else happens.
const CALM_TICK_NS: u64 = 1_000_000_000;
/// The server is calm this long after the last event: longer than the timeout of anything that an
/// event can begin, except for saving a session.
const CALM_AFTER_NS: u64 = 12_000_000_000;
/// The part of the recording that may be written between two polls, so that no record is
/// overwritten before it is read.
const UNREAD_PART: u64 = 4;

/// What decides when the next poll is due.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Situation {
    /// Time since the last event, ns: of a program, a process, or the driver thread.
    pub(super) since_event_ns: u64,
    /// Programs write their sessions, for longer than other timeouts.
    pub(super) saves_session: bool,
    /// The driver's device is gone: why it does not come back is reported.
    pub(super) is_away: bool,
    /// No cycles are run.
    pub(super) is_parked: bool,
    /// Length of a cycle, ns; `None`: cycles follow each other without a pause.
    pub(super) period_ns: Option<u64>,
    /// Records of each cycle.
    pub(super) records: u64,
}

/// Returns how long after a poll the next one is due; `None`: only an event can change something.
///
/// A client that is late, a lost device and a plan that was taken are events: the driver thread
/// calls. So a fault is handled at the same pace, however calm the server was before it.
pub(super) fn tick_ns(situation: &Situation) -> Option<u64> {
    let Situation { since_event_ns, saves_session, is_away, is_parked, period_ns, records } =
        *situation;
    if since_event_ns < CALM_AFTER_NS || saves_session {
        return Some(TICK_NS);
    }
    if is_parked {
        return None;
    }
    let Some(period_ns) = period_ns.filter(|_| !is_away) else { return Some(TICK_NS) };
    let cycles = RECORDS as u64 / UNREAD_PART / records.max(1);
    Some(period_ns.saturating_mul(cycles).clamp(TICK_NS, CALM_TICK_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Situation = Situation {
        since_event_ns: CALM_AFTER_NS,
        saves_session: false,
        is_away: false,
        is_parked: false,
        period_ns: Some(1_333_333),
        records: 2,
    };

    #[test]
    fn timeouts_are_polled_until_those_of_the_last_event_have_passed() {
        for is_parked in [false, true] {
            let after = |since_event_ns| tick_ns(&Situation { since_event_ns, is_parked, ..CALM });
            assert_eq!((after(0), after(CALM_AFTER_NS - 1)), (Some(TICK_NS), Some(TICK_NS)));
        }
        assert_eq!(tick_ns(&CALM), Some(CALM_TICK_NS));
        assert_eq!(tick_ns(&Situation { is_parked: true, ..CALM }), None);
    }

    #[test]
    fn what_lasts_longer_than_the_timeouts_is_polled_as_often() {
        let lasting = [
            Situation { saves_session: true, ..CALM },
            Situation { saves_session: true, is_parked: true, ..CALM },
            Situation { is_away: true, ..CALM },
            Situation { period_ns: None, ..CALM },
        ];
        for situation in lasting {
            assert_eq!(tick_ns(&situation), Some(TICK_NS), "{situation:?}");
        }
    }

    #[test]
    fn no_record_of_a_calm_server_is_overwritten_before_it_is_read() {
        let with = |records| tick_ns(&Situation { records, ..CALM });
        assert_eq!(with(10), Some(CALM_TICK_NS));
        // A quarter of 32,768 records are 81 cycles of 101.
        assert_eq!(with(101), Some(81 * 1_333_333));
        assert_eq!(with(100_000), Some(TICK_NS), "as ever");
    }
}
