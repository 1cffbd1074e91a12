//! Whose messages an event loop handles when: however much one program sends, and on however many
//! connections, the others have their turn. Pure: the loop passes the time.
//!
//! A *round* is what the loop's poller has reported at once. In a round, all connections of one
//! program have one time slice together. The loops are the server's control thread (decision 153)
//! and the front end for programs of PulseAudio (decision 170).
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

/// How long messages of one program are handled in a round. The last of them may take longer.
const PROGRAM_NS: u64 = 2_000_000;

/// The time in which messages of one connection are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSlice {
    began_ns: u64,
    until_ns: u64,
}

impl TimeSlice {
    /// Returns a slice that is due, however much time the program has had in this round.
    pub fn due(now_ns: u64) -> Self {
        Self { began_ns: now_ns, until_ns: now_ns + PROGRAM_NS }
    }

    /// Returns whether another message may be handled.
    pub fn goes_on(self, now_ns: u64) -> bool {
        // MUTATION: time_slice.without_end
        now_ns < self.until_ns
    }
}

/// What programs, each named by a `P`, have had of a round.
#[derive(Debug)]
pub struct RoundRobin<P> {
    used_ns: BTreeMap<P, u64>,
    /// A connection was passed over in this round.
    has_skipped: bool,
    /// Rounds in which one was.
    rounds: usize,
}

impl<P> Default for RoundRobin<P> {
    fn default() -> Self {
        Self { used_ns: BTreeMap::new(), has_skipped: false, rounds: 0 }
    }
}

impl<P: Copy + Ord> RoundRobin<P> {
    /// Begins a round with the connections that are ready. If one was passed over in the last
    /// round, another one comes first in this round.
    pub fn begin_round<T>(&mut self, ready: &mut [T]) {
        self.used_ns.clear();
        self.rounds = self.rounds.wrapping_add(usize::from(std::mem::take(&mut self.has_skipped)));
        if !ready.is_empty() {
            let first = self.rounds % ready.len();
            // MUTATION: round_robin.same_connection_first
            ready.rotate_left(first);
        }
    }

    /// Begins the time slice of a connection; `None`: its program has had its time in this round.
    pub fn begin(&mut self, program: P, now_ns: u64) -> Option<TimeSlice> {
        // MUTATION: round_robin.one_slice_for_each_connection
        let used_ns = self.used_ns.get(&program).copied().unwrap_or(0);
        if used_ns >= PROGRAM_NS {
            self.has_skipped = true;
            return None;
        }
        Some(TimeSlice { began_ns: now_ns, until_ns: now_ns + PROGRAM_NS - used_ns })
    }

    /// Ends a time slice, and counts how long it was.
    pub fn end(&mut self, program: P, slice: TimeSlice, now_ns: u64) {
        *self.used_ns.entry(program).or_default() += now_ns.saturating_sub(slice.began_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;
    /// Messages of one connection in a round: with fast ones, fewer than fit into a slice.
    const MESSAGES: usize = 16;

    /// Connections that are always ready, in the order of the poller: each with its program, how
    /// long one of its messages takes, ns, and how many were handled.
    struct Connections {
        robin: RoundRobin<u32>,
        now_ns: u64,
        all: Vec<(u32, u64, usize)>,
    }

    impl Connections {
        fn new(all: impl IntoIterator<Item = (u32, u64)>) -> Self {
            let all = all.into_iter().map(|(program, cost_ns)| (program, cost_ns, 0)).collect();
            Self { robin: RoundRobin::default(), now_ns: 1, all }
        }

        /// Runs a round; returns how long it took, ns.
        fn round(&mut self) -> u64 {
            let began_ns = self.now_ns;
            let mut ready: Vec<usize> = (0..self.all.len()).collect();
            self.robin.begin_round(&mut ready);
            for connection in ready {
                let (program, cost_ns, handled) = &mut self.all[connection];
                let Some(slice) = self.robin.begin(*program, self.now_ns) else { continue };
                for _ in 0..MESSAGES {
                    if slice.goes_on(self.now_ns) {
                        self.now_ns += *cost_ns;
                        *handled += 1;
                    }
                }
                self.robin.end(*program, slice, self.now_ns);
            }
            self.now_ns - began_ns
        }

        fn handled(&self) -> Vec<usize> {
            self.all.iter().map(|(_, _, handled)| *handled).collect()
        }
    }

    #[test]
    fn slow_messages_end_a_slice_early() {
        let mut connections = Connections::new([(1, 300 * US), (2, 1_000 * US), (3, US)]);
        assert_eq!(connections.round(), 2_100 * US + 2_000 * US + 16 * US);
        let handled = [7, 2, MESSAGES];
        assert_eq!(connections.handled(), handled, "the seventh began within two milliseconds");
    }

    #[test]
    fn a_program_has_one_slice_for_all_of_its_connections() {
        let many = [(1, 500 * US); 1000];
        let mut connections = Connections::new(many.into_iter().chain([(2, US)]));
        for _ in 0..10 {
            assert_eq!(connections.round(), 2_016 * US, "one slice, and the other program's");
        }
        let handled = connections.handled();
        assert_eq!(handled[1000], 10 * MESSAGES, "the other program's");
        assert_eq!(handled[..1000].iter().sum::<usize>(), 40);
    }

    #[test]
    fn each_connection_of_a_program_has_its_turn_some_time() {
        let mut connections = Connections::new([(1, 3_000 * US); 5]);
        for _ in 0..10 {
            connections.round();
        }
        assert_eq!(connections.handled(), [2; 5]);
    }

    #[test]
    fn a_slice_that_is_due_begins_although_its_program_has_had_its_time() {
        let mut robin = RoundRobin::default();
        let slice = robin.begin(1, 0).unwrap();
        robin.end(1, slice, PROGRAM_NS);
        assert!(robin.begin(1, PROGRAM_NS).is_none());
        assert!(TimeSlice::due(PROGRAM_NS).goes_on(PROGRAM_NS));
    }
}
