//! Which request a reply answers.

/// The right to answer one request. The reply consumes it, and it cannot be copied: no request is
/// answered twice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// The peer that asked, by its serial number.
    pub(super) peer: u64,
    /// The number that the peer gave its request.
    pub(super) number: u32,
}

/// Requests that are answered once the driver runs a plan that holds what was asked.
#[derive(Debug, Default)]
pub(super) struct PendingReplies(Vec<PendingReply>);

#[derive(Debug)]
struct PendingReply {
    ticket: Ticket,
    /// Answered when the driver runs a plan of this generation.
    generation: u64,
    deadline_ns: u64,
    closes: bool,
}

/// A reply that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DueReply {
    pub(super) ticket: Ticket,
    /// The peer is closed after the reply.
    pub(super) closes: bool,
}

/// Requests of one peer that wait for a plan.
pub(super) const PENDING_PER_PEER: usize = 64;
/// An answer waits for a plan at most this long: the driver may have no cycles.
const ADOPTION_NS: u64 = 2_000_000_000;

impl PendingReplies {
    /// Notes a request that is answered with the plan `generation`. With `closes` it is the peer's
    /// last one.
    ///
    /// # Errors
    /// The ticket, if too many requests of its peer wait already.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        generation: u64,
        closes: bool,
        now_ns: u64,
    ) -> Result<(), Ticket> {
        let of_peer = |reply: &&PendingReply| reply.ticket.peer == ticket.peer;
        // MUTATION: pending.without_limit
        if self.0.iter().filter(of_peer).count() >= PENDING_PER_PEER && !closes {
            return Err(ticket);
        }
        let deadline_ns = now_ns + ADOPTION_NS;
        self.0.push(PendingReply { ticket, generation, deadline_ns, closes });
        Ok(())
    }

    /// Takes the replies whose plan runs, and those that have waited too long, oldest first.
    pub(super) fn take_due(&mut self, running: u64, now_ns: u64) -> Vec<DueReply> {
        let is_due =
            |reply: &mut PendingReply| reply.generation <= running || reply.deadline_ns <= now_ns;
        let due = self.0.extract_if(.., is_due);
        due.map(|PendingReply { ticket, closes, .. }| DueReply { ticket, closes }).collect()
    }

    /// Drops the replies to a peer that has gone.
    pub(super) fn forget(&mut self, peer: u64) {
        self.0.retain(|reply| reply.ticket.peer != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(peer: u64, number: u32) -> Ticket {
        Ticket { peer, number }
    }

    fn due(replies: &mut PendingReplies, running: u64, now_ns: u64) -> Vec<(u64, u32)> {
        let due = replies.take_due(running, now_ns);
        due.into_iter().map(|due| (due.ticket.peer, due.ticket.number)).collect()
    }

    #[test]
    fn a_request_is_answered_once_when_its_plan_runs() {
        let mut replies = PendingReplies::default();
        replies.add(ticket(1, 1), 5, false, 0).unwrap();
        replies.add(ticket(1, 2), 6, false, 0).unwrap();
        assert_eq!(due(&mut replies, 4, 0), []);
        assert_eq!(due(&mut replies, 5, 0), [(1, 1)]);
        assert_eq!(due(&mut replies, 7, 0), [(1, 2)]);
        assert_eq!(due(&mut replies, 7, u64::MAX), [], "each only once");
    }

    #[test]
    fn two_requests_of_one_number_are_each_answered_once() {
        let mut replies = PendingReplies::default();
        replies.add(ticket(1, 9), 1, false, 0).unwrap();
        replies.add(ticket(1, 9), 2, false, 0).unwrap();
        assert_eq!(due(&mut replies, 1, 0), [(1, 9)]);
        assert_eq!(due(&mut replies, 2, 0), [(1, 9)]);
        assert_eq!(due(&mut replies, 3, u64::MAX), []);
    }

    #[test]
    fn a_request_is_answered_in_time_by_a_driver_without_cycles() {
        let mut replies = PendingReplies::default();
        replies.add(ticket(1, 1), 5, false, 1_000).unwrap();
        assert_eq!(due(&mut replies, 0, 999 + ADOPTION_NS), []);
        assert_eq!(due(&mut replies, 0, 1_000 + ADOPTION_NS), [(1, 1)]);
    }

    #[test]
    fn only_the_replies_to_a_closed_peer_are_dropped() {
        let mut replies = PendingReplies::default();
        replies.add(ticket(1, 1), 1, false, 0).unwrap();
        replies.add(ticket(2, 1), 1, true, 0).unwrap();
        replies.forget(1);
        assert_eq!(replies.take_due(1, 0), [DueReply { ticket: ticket(2, 1), closes: true }]);
    }

    #[test]
    fn a_peer_with_too_many_waiting_requests_can_only_close() {
        let mut replies = PendingReplies::default();
        for number in 0..PENDING_PER_PEER as u32 {
            replies.add(ticket(1, number), 1, false, 0).unwrap();
        }
        assert_eq!(replies.add(ticket(1, 100), 1, false, 0), Err(ticket(1, 100)));
        assert_eq!(replies.add(ticket(2, 0), 1, false, 0), Ok(()));
        assert_eq!(replies.add(ticket(1, 101), 1, true, 0), Ok(()));
    }
}
