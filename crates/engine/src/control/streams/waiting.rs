//! Requests for streams that wait until clients which return from another server have had their
//! time. Each program has a part of the places, as it has of the streams.

use proto::limits::{STREAMS, STREAMS_OF_PROCESS, STREAMS_OF_PROGRAM};
use proto::stream::NewStream;

use super::Ticket;
use crate::stream_budget::Account;

/// The requests, oldest first.
#[derive(Debug, Default)]
pub(super) struct WaitingStreams(Vec<WaitingStream>);

#[derive(Debug)]
struct WaitingStream {
    ticket: Ticket,
    account: Account,
    new: NewStream,
}

impl WaitingStreams {
    /// Has a request of an account wait.
    ///
    /// # Errors
    /// The ticket, if as many wait as there can be streams: of the account, of its process, or of
    /// all programs.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        account: Account,
        new: NewStream,
    ) -> Result<(), Ticket> {
        // MUTATION: waiting_streams.of_one_program
        let of_account = self.count(|known| known == account);
        // MUTATION: waiting_streams.of_one_process
        let of_process = self.count(|known| known.process == account.process);
        let is_full = of_account >= STREAMS_OF_PROGRAM
            || of_process >= STREAMS_OF_PROCESS
            || self.0.len() >= STREAMS;
        if is_full {
            return Err(ticket);
        }
        self.0.push(WaitingStream { ticket, account, new });
        Ok(())
    }

    fn count(&self, is_counted: impl Fn(Account) -> bool) -> usize {
        self.0.iter().filter(|waiting| is_counted(waiting.account)).count()
    }

    /// Takes all of them.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Ticket, NewStream)> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|waiting| (waiting.ticket, waiting.new))
    }

    /// A peer has gone.
    pub(super) fn forget(&mut self, peer: u64) {
        self.0.retain(|waiting| waiting.ticket.peer != peer);
    }
}

#[cfg(test)]
mod tests {
    use proto::stream::Direction;

    use super::*;

    fn new() -> NewStream {
        NewStream {
            program: "player".into(),
            name: "song".into(),
            device: None,
            direction: Direction::Playback,
            channels: vec![0],
            depth_frames: 0,
            samples: 0,
            account: 0,
            lets_sleep: false,
            reopens: false,
        }
    }

    /// Has as many requests wait as there is room for; returns their number.
    fn fill(waiting: &mut WaitingStreams, peer: u64, account: Account) -> usize {
        let add = |number| waiting.add(Ticket { peer, number }, account, new());
        (0..2 * STREAMS as u32).map(add).take_while(Result::is_ok).count()
    }

    fn account(process: u32, number: u32) -> Account {
        Account { process, number }
    }

    #[test]
    fn each_program_has_a_part_of_the_places_for_requests_that_wait() {
        let mut waiting = WaitingStreams::default();
        assert_eq!(fill(&mut waiting, 1, account(7, 0)), STREAMS_OF_PROGRAM);
        assert_eq!(fill(&mut waiting, 2, account(7, 0)), 0, "the same program");
        let of_one: usize = (0..100).map(|number| fill(&mut waiting, 3, account(8, number))).sum();
        assert_eq!(of_one, STREAMS_OF_PROCESS, "a process that plays for others");
        let left = STREAMS - STREAMS_OF_PROGRAM - STREAMS_OF_PROCESS;
        let others: usize =
            (9..100).map(|process| fill(&mut waiting, 4, account(process, 0))).sum();
        assert_eq!(others, left);
        assert_eq!(waiting.take().count(), STREAMS);
        assert_eq!(fill(&mut waiting, 1, account(7, 0)), STREAMS_OF_PROGRAM, "once taken");
    }

    #[test]
    fn a_program_that_has_gone_keeps_no_place() {
        let mut waiting = WaitingStreams::default();
        fill(&mut waiting, 1, account(7, 0));
        fill(&mut waiting, 2, account(8, 0));
        waiting.forget(1);
        assert!(waiting.take().all(|(ticket, _)| ticket.peer == 2));
        assert_eq!(fill(&mut waiting, 3, account(7, 0)), STREAMS_OF_PROGRAM);
    }
}
