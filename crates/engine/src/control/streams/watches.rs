//! Programs that wait for a change of the devices, of the streams as well, or of the graph.

use proto::stream::Watched;

use super::Ticket;

/// The changes so far, and who waits for the next one.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// The number of the last change of the devices.
    last: u64,
    /// The number of the last change of a stream or of the devices.
    last_of_any: u64,
    waiting: Vec<Watch>,
}

#[derive(Debug)]
struct Watch {
    ticket: Ticket,
    seen: u64,
    of: Watched,
}

impl Watches {
    /// Something about the devices has changed.
    pub(super) fn note_change(&mut self) {
        self.last += 1;
        self.note_stream_change();
    }

    /// Something about a stream has changed.
    pub(super) fn note_stream_change(&mut self) {
        self.last_of_any += 1;
    }

    /// Has a program wait until there is another change than the last one it has `seen`.
    ///
    /// # Errors
    /// The ticket, if its peer waits already.
    pub(super) fn wait(&mut self, ticket: Ticket, seen: u64, of: Watched) -> Result<(), Ticket> {
        if self.waiting.iter().any(|watch| watch.ticket.peer == ticket.peer) {
            return Err(ticket);
        }
        self.waiting.push(Watch { ticket, seen, of });
        Ok(())
    }

    /// Takes those that are to be answered, each with the number of the last change.
    /// `last_of_graph`: that of the graph.
    pub(super) fn take_due(&mut self, last_of_graph: u64) -> Vec<(Ticket, u64)> {
        let (last, last_of_any) = (self.last, self.last_of_any);
        let number = |watch: &Watch| match watch.of {
            Watched::Devices => last,
            Watched::Streams => last_of_any,
            Watched::Graph => last_of_graph,
        };
        let due = self.waiting.extract_if(.., |watch| watch.seen != number(watch));
        due.map(|watch| {
            let number = number(&watch);
            (watch.ticket, number)
        })
        .collect()
    }

    /// A peer has gone.
    pub(super) fn forget(&mut self, peer: u64) {
        self.waiting.retain(|watch| watch.ticket.peer != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: u64 = 5;

    fn ticket(peer: u64) -> Ticket {
        Ticket { peer, number: 7 }
    }

    fn due(watches: &mut Watches) -> Vec<(u64, u64)> {
        watches.take_due(GRAPH).into_iter().map(|(ticket, number)| (ticket.peer, number)).collect()
    }

    #[test]
    fn a_program_is_answered_once_for_all_changes_that_it_has_not_seen() {
        let mut watches = Watches::default();
        watches.wait(ticket(1), 0, Watched::Devices).unwrap();
        assert_eq!(due(&mut watches), [], "nothing has changed");
        watches.note_change();
        watches.note_change();
        assert_eq!(due(&mut watches), [(1, 2)]);
        assert_eq!(due(&mut watches), [], "once");
        watches.wait(ticket(1), 2, Watched::Devices).unwrap();
        watches.wait(ticket(2), 1, Watched::Devices).unwrap();
        assert_eq!(due(&mut watches), [(2, 2)], "the other one has seen it");
    }

    #[test]
    fn a_change_of_a_stream_wakes_only_programs_that_wait_for_streams() {
        let mut watches = Watches::default();
        watches.wait(ticket(1), 0, Watched::Devices).unwrap();
        watches.wait(ticket(2), 0, Watched::Streams).unwrap();
        watches.note_stream_change();
        assert_eq!(due(&mut watches), [(2, 1)]);
        watches.wait(ticket(2), 1, Watched::Streams).unwrap();
        watches.note_change();
        assert_eq!(due(&mut watches), [(1, 1), (2, 2)], "a change of the devices wakes both");
    }

    #[test]
    fn a_change_of_the_graph_wakes_only_programs_that_wait_for_it() {
        let mut watches = Watches::default();
        watches.wait(ticket(1), 0, Watched::Streams).unwrap();
        watches.wait(ticket(2), GRAPH, Watched::Graph).unwrap();
        watches.wait(ticket(3), GRAPH - 1, Watched::Graph).unwrap();
        assert_eq!(due(&mut watches), [(3, GRAPH)], "the others have seen it, or wait for streams");
    }

    #[test]
    fn a_connection_waits_once_and_not_after_its_end() {
        let mut watches = Watches::default();
        watches.wait(ticket(1), 0, Watched::Devices).unwrap();
        assert_eq!(watches.wait(ticket(1), 0, Watched::Streams), Err(ticket(1)));
        watches.forget(1);
        watches.note_change();
        assert!(due(&mut watches).is_empty());
    }
}
