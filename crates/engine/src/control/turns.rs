//! Whose packets are handled when: however much a program sends, and on however many connections,
//! the others have their turn. Pure; the control thread asks with the time.
//!
//! A round is what the poller has reported at once.

use std::collections::BTreeMap;

/// How long the packets of one program are handled in a round. One packet may take longer.
const PROGRAM_NS: u64 = 2_000_000;

/// A socket's turn: what may be handled of it before the other sockets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    began_ns: u64,
    until_ns: u64,
    packets: usize,
}

impl Turn {
    /// Returns a turn that is due, whatever the program has had in this round.
    pub(super) fn due(packets: usize, now_ns: u64) -> Self {
        Self { began_ns: now_ns, until_ns: now_ns + PROGRAM_NS, packets }
    }

    /// Returns whether another packet may be handled, and counts it.
    pub(super) fn takes_packet(&mut self, now_ns: u64) -> bool {
        // MUTATION: turn.without_end
        let goes_on = self.packets > 0 && now_ns < self.until_ns;
        self.packets = self.packets.saturating_sub(1);
        goes_on
    }
}

/// The turns of programs `P` in a round.
#[derive(Debug)]
pub(super) struct Turns<P> {
    used_ns: BTreeMap<P, u64>,
    /// A socket has had no turn in this round.
    has_skipped: bool,
    /// Rounds of which that is true.
    rounds: usize,
}

impl<P> Default for Turns<P> {
    fn default() -> Self {
        Self { used_ns: BTreeMap::new(), has_skipped: false, rounds: 0 }
    }
}

impl<P: Copy + Ord> Turns<P> {
    /// Begins a round with the sockets that are ready. If one had no turn in the last round,
    /// another one of its program is the first.
    pub(super) fn begin_round<T>(&mut self, ready: &mut [T]) {
        self.used_ns.clear();
        self.rounds = self.rounds.wrapping_add(usize::from(std::mem::take(&mut self.has_skipped)));
        if !ready.is_empty() {
            let first = self.rounds % ready.len();
            // MUTATION: turns.same_socket_first
            ready.rotate_left(first);
        }
    }

    /// Begins the turn of a socket of `program`; `None`: its program has had its time in this
    /// round.
    pub(super) fn begin(&mut self, program: P, packets: usize, now_ns: u64) -> Option<Turn> {
        // MUTATION: turns.one_for_each_connection
        let used_ns = self.used_ns.get(&program).copied().unwrap_or(0);
        if used_ns >= PROGRAM_NS {
            self.has_skipped = true;
            return None;
        }
        Some(Turn { began_ns: now_ns, until_ns: now_ns + PROGRAM_NS - used_ns, packets })
    }

    /// Ends a turn, and counts its time.
    pub(super) fn end(&mut self, program: P, turn: Turn, now_ns: u64) {
        *self.used_ns.entry(program).or_default() += now_ns.saturating_sub(turn.began_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of one socket in a row.
    const PACKETS: usize = 16;
    const US: u64 = 1000;

    /// Sockets that are always ready, in the order of the poller: each with its program, how long
    /// one of its packets takes, and how many were handled.
    struct Sockets {
        turns: Turns<u32>,
        now_ns: u64,
        sockets: Vec<(u32, u64, usize)>,
    }

    impl Sockets {
        fn new(sockets: impl IntoIterator<Item = (u32, u64)>) -> Self {
            let sockets = sockets.into_iter().map(|(program, cost)| (program, cost, 0)).collect();
            Self { turns: Turns::default(), now_ns: 1, sockets }
        }

        /// Runs a round; returns how long it took, ns.
        fn round(&mut self) -> u64 {
            let began_ns = self.now_ns;
            let mut ready: Vec<usize> = (0..self.sockets.len()).collect();
            self.turns.begin_round(&mut ready);
            for socket in ready {
                let (program, cost_ns, handled) = &mut self.sockets[socket];
                let Some(turn) = self.turns.begin(*program, PACKETS, self.now_ns) else { continue };
                let mut left = turn;
                while left.takes_packet(self.now_ns) {
                    self.now_ns += *cost_ns;
                    *handled += 1;
                }
                self.turns.end(*program, turn, self.now_ns);
            }
            self.now_ns - began_ns
        }

        fn handled(&self) -> Vec<usize> {
            self.sockets.iter().map(|(_, _, handled)| *handled).collect()
        }
    }

    #[test]
    fn a_socket_has_as_many_packets_handled_as_others_wait_for() {
        let mut sockets = Sockets::new([(1, US), (2, US)]);
        assert_eq!(sockets.round(), 32 * US);
        assert_eq!(sockets.handled(), [PACKETS; 2]);
    }

    #[test]
    fn slow_packets_end_a_turn_early() {
        let mut sockets = Sockets::new([(1, 300 * US), (2, US)]);
        assert_eq!(sockets.round(), 2_100 * US + 16 * US);
        assert_eq!(sockets.handled(), [7, PACKETS], "the seventh began within two milliseconds");
    }

    #[test]
    fn a_program_has_one_time_for_all_of_its_connections() {
        let many = [(1, 500 * US); 1000];
        let mut sockets = Sockets::new(many.into_iter().chain([(2, US)]));
        for _ in 0..10 {
            assert!(sockets.round() <= 2_516 * US, "two milliseconds, a packet, and the other");
        }
        let handled = sockets.handled();
        assert_eq!(handled[1000], 10 * PACKETS, "the other program's");
        assert_eq!(handled[..1000].iter().sum::<usize>(), 40);
    }

    #[test]
    fn each_connection_of_a_program_has_its_turn_some_time() {
        let mut sockets = Sockets::new([(1, 3_000 * US); 5]);
        for _ in 0..10 {
            sockets.round();
        }
        assert_eq!(sockets.handled(), [2; 5]);
    }

    #[test]
    fn a_turn_that_is_due_begins_although_its_program_has_had_its_time() {
        let mut turns = Turns::default();
        let turn = turns.begin(1, PACKETS, 0).unwrap();
        turns.end(1, turn, PROGRAM_NS);
        assert!(turns.begin(1, PACKETS, PROGRAM_NS).is_none());
        let mut due = Turn::due(2, PROGRAM_NS);
        assert_eq!([(); 3].map(|()| due.takes_packet(PROGRAM_NS)), [true, true, false]);
    }
}
