//! Programs that wait for a change of the devices: for one that comes or goes, another volume, or a
//! stream that moves.

use super::Ticket;

/// The changes so far, and who waits for the next one.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// The number of the last change.
    last: u64,
    waiting: Vec<Watch>,
}

#[derive(Debug)]
struct Watch {
    ticket: Ticket,
    seen: u64,
}

impl Watches {
    /// Something has changed.
    pub(super) fn note_change(&mut self) {
        self.last += 1;
    }

    /// Has a program wait until there is another change than the last one it has `seen`.
    ///
    /// # Errors
    /// The ticket, if its peer waits already.
    pub(super) fn wait(&mut self, ticket: Ticket, seen: u64) -> Result<(), Ticket> {
        if self.waiting.iter().any(|watch| watch.ticket.peer == ticket.peer) {
            return Err(ticket);
        }
        self.waiting.push(Watch { ticket, seen });
        Ok(())
    }

    /// Takes those that are to be answered, with the number of the last change.
    pub(super) fn take_due(&mut self) -> (Vec<Ticket>, u64) {
        let last = self.last;
        let due = self.waiting.extract_if(.., |watch| watch.seen != last);
        (due.map(|watch| watch.ticket).collect(), last)
    }

    /// A peer has gone.
    pub(super) fn forget(&mut self, peer: u64) {
        self.waiting.retain(|watch| watch.ticket.peer != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(peer: u64) -> Ticket {
        Ticket { peer, number: 7 }
    }

    fn due(watches: &mut Watches) -> (Vec<u64>, u64) {
        let (tickets, number) = watches.take_due();
        (tickets.into_iter().map(|ticket| ticket.peer).collect(), number)
    }

    #[test]
    fn a_program_is_answered_once_for_all_changes_that_it_has_not_seen() {
        let mut watches = Watches::default();
        watches.wait(ticket(1), 0).unwrap();
        assert_eq!(due(&mut watches), (vec![], 0), "nothing has changed");
        watches.note_change();
        watches.note_change();
        assert_eq!(due(&mut watches), (vec![1], 2));
        assert_eq!(due(&mut watches), (vec![], 2), "once");
        watches.wait(ticket(1), 2).unwrap();
        watches.wait(ticket(2), 1).unwrap();
        assert_eq!(due(&mut watches), (vec![2], 2), "the other one has seen it");
    }

    #[test]
    fn a_connection_waits_once_and_not_after_its_end() {
        let mut watches = Watches::default();
        watches.wait(ticket(1), 0).unwrap();
        assert_eq!(watches.wait(ticket(1), 0), Err(ticket(1)));
        watches.forget(1);
        watches.note_change();
        assert!(due(&mut watches).0.is_empty());
    }
}
