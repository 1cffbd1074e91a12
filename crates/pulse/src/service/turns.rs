//! Which connection is read from when: however much a program sends, and on however many
//! connections, the others have their turn. Pure; the service asks with the time.
//!
//! A round is what the poller has reported at once.

use std::collections::BTreeMap;

/// How long the frames of one program are handled in a round. One frame may take longer.
const PROGRAM_NS: u64 = 2_000_000;

/// The turn of a connection: until when its frames are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    began_ns: u64,
    until_ns: u64,
}

impl Turn {
    /// Returns whether another frame may be handled.
    pub fn goes_on(self, now_ns: u64) -> bool {
        // MUTATION: link_turn.without_end
        now_ns < self.until_ns
    }
}

/// The turns of programs in a round, by their accounts.
#[derive(Debug, Default)]
pub(super) struct Turns {
    used_ns: BTreeMap<u32, u64>,
    /// A connection has had no turn in this round.
    has_skipped: bool,
    /// Rounds of which that is true.
    rounds: usize,
}

impl Turns {
    /// Begins a round with what is ready. If a connection had no turn in the last round, another
    /// one is the first.
    pub fn begin_round<T>(&mut self, ready: &mut [T]) {
        self.used_ns.clear();
        self.rounds = self.rounds.wrapping_add(usize::from(std::mem::take(&mut self.has_skipped)));
        if !ready.is_empty() {
            let first = self.rounds % ready.len();
            ready.rotate_left(first);
        }
    }

    /// Begins the turn of a connection; `None`: its program has had its time in this round.
    pub fn begin(&mut self, account: u32, now_ns: u64) -> Option<Turn> {
        // MUTATION: link_turns.one_for_each_connection
        let used_ns = self.used_ns.get(&account).copied().unwrap_or(0);
        if used_ns >= PROGRAM_NS {
            self.has_skipped = true;
            return None;
        }
        Some(Turn { began_ns: now_ns, until_ns: now_ns + PROGRAM_NS - used_ns })
    }

    /// Ends a turn, and counts its time.
    pub fn end(&mut self, account: u32, turn: Turn, now_ns: u64) {
        *self.used_ns.entry(account).or_default() += now_ns.saturating_sub(turn.began_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;
    /// More frames than fit into a turn.
    const FRAMES: usize = 100;

    /// Connections that have as many frames in each round: the account of each, how long one of
    /// its frames takes, ns, and how many were handled.
    struct Connections {
        turns: Turns,
        now_ns: u64,
        all: Vec<(u32, u64, usize)>,
    }

    impl Connections {
        fn new(all: impl IntoIterator<Item = (u32, u64)>) -> Self {
            let all = all.into_iter().map(|(account, cost_ns)| (account, cost_ns, 0)).collect();
            Self { turns: Turns::default(), now_ns: 1, all }
        }

        /// Runs a round; returns how long it took, ns.
        fn round(&mut self) -> u64 {
            let began_ns = self.now_ns;
            let mut ready: Vec<usize> = (0..self.all.len()).collect();
            self.turns.begin_round(&mut ready);
            for connection in ready {
                let (account, cost_ns, handled) = &mut self.all[connection];
                let Some(turn) = self.turns.begin(*account, self.now_ns) else { continue };
                for _ in 0..FRAMES {
                    if turn.goes_on(self.now_ns) {
                        self.now_ns += *cost_ns;
                        *handled += 1;
                    }
                }
                self.turns.end(*account, turn, self.now_ns);
            }
            self.now_ns - began_ns
        }

        fn handled(&self) -> Vec<usize> {
            self.all.iter().map(|(_, _, handled)| *handled).collect()
        }
    }

    #[test]
    fn a_turn_ends_with_the_frame_that_is_handled_when_its_time_is_over() {
        let mut connections = Connections::new([(1, 300 * US), (2, 1000 * US)]);
        assert_eq!(connections.round(), 2_100 * US + 2_000 * US);
        assert_eq!(connections.handled(), [7, 2]);
    }

    #[test]
    fn a_program_has_one_time_for_all_of_its_connections() {
        let many = [(1, 500 * US); 128];
        let mut connections = Connections::new(many.into_iter().chain([(2, 1000 * US)]));
        for _ in 0..10 {
            assert_eq!(connections.round(), 4_000 * US);
        }
        let handled = connections.handled();
        assert_eq!((handled[128], handled[..128].iter().sum::<usize>()), (20, 40));
    }

    #[test]
    fn each_connection_of_a_program_has_its_turn_some_time() {
        let mut connections = Connections::new([(1, 3_000 * US); 5]);
        for _ in 0..10 {
            connections.round();
        }
        assert_eq!(connections.handled(), [2; 5]);
    }
}
