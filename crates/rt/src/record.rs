//! The driver thread's records of a cycle, and their encoding in the recording's words.

use crate::shm::{CycleInfo, Edges, OwnPage, RECORD_WORDS, SignalPage};

/// One record of the recording. A cycle's record comes first; the records of its clients follow
/// after it has ended and before the next cycle's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The driver's part of a cycle.
    Cycle(CycleRecord),
    /// A client's part.
    Client(ClientRecord),
}

/// CPU number of a thread whose CPU is unknown.
pub const UNKNOWN_CPU: u16 = u16::MAX;

/// The driver's part of a cycle. Times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CycleRecord {
    /// Number of the cycle; wraps.
    pub cycle: u32,
    /// Generation of the plan that it ran.
    pub plan: u64,
    /// Length in frames.
    pub quantum: u32,
    /// Sample rate, Hz.
    pub sample_rate_hz: u32,
    /// When the cycle was due: the ideal time of the wake-up.
    pub due_ns: u64,
    /// When the driver woke.
    pub woken_ns: u64,
    /// When the driver released the first clients.
    pub released_ns: u64,
    /// When the driver finished its part; in sync mode, after the clients that it plays.
    pub end_ns: u64,
    /// CPU that the driver ran on, or [`UNKNOWN_CPU`].
    pub cpu: u16,
    /// Clients that had not finished the previous cycle by their own fault.
    pub late: u16,
    /// If the device lost frames before the cycle: how late the xrun was noticed, µs.
    pub xrun_us: Option<u32>,
    /// Whether the device was gone, and a timer started the cycle.
    pub is_away: bool,
}

/// A client's part of a cycle. Clients write the timestamps themselves, except `signaled_ns` of a
/// client that waits for the driver only: they are hints, and may lie outside the cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientRecord {
    /// Number of the cycle.
    pub cycle: u32,
    /// Id of the client.
    pub client: u32,
    /// When the last of its predecessors signaled it; 0 if none did.
    pub signaled_ns: u64,
    /// When it woke; 0 if it did not begin the cycle before the next one.
    pub awake_ns: u64,
    /// When it finished; 0 if it had not before the next cycle.
    pub finished_ns: u64,
    /// CPU that it ran on last, or [`UNKNOWN_CPU`].
    pub cpu: u16,
    /// For how many cycles in a row it has been late; 0 if it finished in time.
    pub late_cycles: u16,
    /// Whether it could not run because a predecessor was late.
    pub starved: bool,
}

const CYCLE: u64 = 1;
const CLIENT: u64 = 2;
const NO_XRUN: u32 = u32::MAX;

impl Record {
    /// Encodes the record. Thread: cycle.
    #[must_use]
    pub fn to_words(self) -> [u64; RECORD_WORDS] {
        let words: [u64; 8] = match self {
            Self::Cycle(record) => [
                u64::from(record.is_away) << 63 | CYCLE << 32 | u64::from(record.cycle),
                record.due_ns,
                record.woken_ns,
                record.released_ns,
                record.end_ns,
                record.plan,
                u64::from(record.sample_rate_hz) << 32 | u64::from(record.quantum),
                u64::from(record.cpu) << 48
                    | u64::from(record.late) << 32
                    | u64::from(record.xrun_us.unwrap_or(NO_XRUN)),
            ],
            Self::Client(record) => [
                CLIENT << 32 | u64::from(record.cycle),
                record.signaled_ns,
                record.awake_ns,
                record.finished_ns,
                u64::from(record.client),
                u64::from(record.cpu) << 48
                    | u64::from(record.late_cycles) << 32
                    | u64::from(record.starved),
                0,
                0,
            ],
        };
        core::array::from_fn(|index| words[index])
    }

    /// Decodes a record; `None` if the words are no record of this version. Thread: any.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "each part of a packed word is as wide as its field"
    )]
    pub fn from_words(words: &[u64; RECORD_WORDS]) -> Option<Self> {
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        let cycle = word(0) as u32;
        match word(0) << 1 >> 33 {
            CYCLE => Some(Self::Cycle(CycleRecord {
                cycle,
                due_ns: word(1),
                woken_ns: word(2),
                released_ns: word(3),
                end_ns: word(4),
                plan: word(5),
                quantum: word(6) as u32,
                sample_rate_hz: (word(6) >> 32) as u32,
                cpu: (word(7) >> 48) as u16,
                late: (word(7) >> 32) as u16,
                xrun_us: Some(word(7) as u32).filter(|xrun_us| *xrun_us != NO_XRUN),
                is_away: word(0) >> 63 == 1,
            })),
            CLIENT => Some(Self::Client(ClientRecord {
                cycle,
                signaled_ns: word(1),
                awake_ns: word(2),
                finished_ns: word(3),
                client: word(4) as u32,
                cpu: (word(5) >> 48) as u16,
                late_cycles: (word(5) >> 32) as u16,
                starved: word(5) & 1 == 1,
            })),
            _ => None,
        }
    }
}

impl CycleRecord {
    /// Returns the length of the cycle at the nominal rate, ns.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive, small duration"
    )]
    pub fn period_ns(&self) -> u64 {
        CycleInfo::nominal_period_ns(self.quantum, self.sample_rate_hz) as u64
    }
}

/// A client's pages, as the driver thread sees them at the end of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct ClientCycle<'a> {
    /// Id of the client.
    pub client: u32,
    /// The client's own page.
    pub own: &'a OwnPage,
    /// The page on which its predecessors signal.
    pub signals: &'a SignalPage,
    /// Number of its predecessors.
    pub edges: Edges,
}

impl ClientRecord {
    /// Records what `client` did in the cycle that has ended, whose first clients were released at
    /// `released_ns`. The next cycle, `now_cycle`, may have begun. Thread: cycle.
    #[must_use]
    pub fn of(client: ClientCycle<'_>, ended: CycleInfo, released_ns: u64, now_cycle: u32) -> Self {
        let ClientCycle { client, own, signals, edges } = client;
        let cycle = ended.cycle;
        let timestamps = own.timestamps(cycle);
        let (awake, finished) = (own.awake(), own.finished());
        let has_finished = finished == cycle || finished == now_cycle;
        let has_begun = has_finished || awake == cycle || awake == now_cycle;
        let signaled_ns =
            if edges == Edges::NONE { released_ns } else { signals.signaled_ns(cycle) };
        let in_cycle = |time_ns: u64| if time_ns < ended.woken_ns { 0 } else { time_ns };
        Self {
            cycle,
            client,
            signaled_ns: in_cycle(signaled_ns),
            awake_ns: if has_begun { in_cycle(timestamps.awake_ns) } else { 0 },
            finished_ns: if has_finished { in_cycle(timestamps.finished_ns) } else { 0 },
            cpu: u16::try_from(timestamps.cpu).unwrap_or(UNKNOWN_CPU),
            late_cycles: 0,
            starved: false,
        }
    }

    /// Returns the time from signaled to awake, ns: how long the kernel took to let it run. `None`
    /// if it did not run.
    #[must_use]
    pub fn scheduling_ns(&self) -> Option<u64> {
        (self.awake_ns != 0 && self.signaled_ns != 0)
            .then(|| self.awake_ns.saturating_sub(self.signaled_ns))
    }

    /// Returns the time from awake to finished, ns; `None` if it has not finished.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        (self.awake_ns != 0 && self.finished_ns != 0)
            .then(|| self.finished_ns.saturating_sub(self.awake_ns))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ENDED: CycleInfo = CycleInfo {
        cycle: 6,
        woken_ns: 1_000,
        plan: 1,
        quantum: 64,
        sample_rate_hz: 48_000,
        frames: 0,
        wakeup_ns: 1_000,
        next_wakeup_ns: 2_000,
        period_ns: 1_000.0,
    };

    #[test]
    fn records_survive_encoding() {
        let cycle = CycleRecord {
            cycle: u32::MAX,
            plan: u64::MAX,
            quantum: 64,
            sample_rate_hz: 48_000,
            due_ns: 1,
            woken_ns: 2,
            released_ns: 3,
            end_ns: 4,
            cpu: 7,
            late: 2,
            xrun_us: Some(0),
            is_away: false,
        };
        let client = ClientRecord {
            cycle: 5,
            client: 77,
            signaled_ns: 1,
            awake_ns: 2,
            finished_ns: 3,
            cpu: UNKNOWN_CPU,
            late_cycles: 9,
            starved: true,
        };
        for record in [
            Record::Cycle(cycle),
            Record::Cycle(CycleRecord { xrun_us: None, is_away: true, ..cycle }),
            Record::Client(client),
            Record::Client(ClientRecord { starved: false, ..client }),
        ] {
            assert_eq!(Record::from_words(&record.to_words()), Some(record));
        }
        assert_eq!(Record::from_words(&[0; RECORD_WORDS]), None);
        assert_eq!(Record::from_words(&[u64::MAX; RECORD_WORDS]), None);
    }

    #[test]
    fn timestamps_of_another_cycle_are_ignored() {
        let (own, signals) = (OwnPage::default(), SignalPage::default());
        let edges = Edges::new(1).expect("one");
        let record = || {
            ClientRecord::of(
                ClientCycle { client: 3, own: &own, signals: &signals, edges },
                ENDED,
                1_100,
                7,
            )
        };
        own.begin(4, 500);
        signals.note_signaled(4, 450);
        own.finish(4, 600, 1);
        let idle = record();
        assert_eq!(
            (idle.signaled_ns, idle.awake_ns, idle.finished_ns),
            (0, 0, 0),
            "it has not begun"
        );
        signals.note_signaled(6, 1_200);
        own.begin(6, 1_300);
        let begun = record();
        assert_eq!((begun.signaled_ns, begun.awake_ns, begun.finished_ns), (1_200, 1_300, 0));
        assert_eq!((begun.scheduling_ns(), begun.duration_ns()), (Some(100), None));
        own.finish(6, 1_450, 1);
        signals.note_signaled(7, 2_200);
        own.begin(7, 2_300);
        let done = record();
        assert_eq!(
            (done.signaled_ns, done.awake_ns, done.finished_ns),
            (1_200, 1_300, 1_450),
            "already in the next"
        );
        assert_eq!((done.scheduling_ns(), done.duration_ns()), (Some(100), Some(150)));
    }
}
