//! Events for a client that may not be reading: the server never waits for it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use proto::encode;
use proto::event::Event;
use sys::socket::SocketError;

/// The most notifications that wait for a client. Further ones are lost, and the client is notified
/// how many.
const LIMIT: usize = 4096;
/// The most events that wait in total. Questions to this client have room beyond [`LIMIT`], because
/// the server may need the answers. There are few at a time, unless the client answers none.
const OWN_LIMIT: usize = 2 * LIMIT;

/// A packet, and the memory that goes with it, with the token of the answer.
type Waiting = (Arc<[u8]>, Option<(u64, Arc<OwnedFd>)>);

/// The events that wait for a client.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: VecDeque<Waiting>,
    lost: u32,
    /// The socket was full: the poller reports when it has room.
    blocked: bool,
}

/// How sending went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushOutcome {
    /// No event waits.
    All,
    /// The system has no memory for any client's events: to be tried again after a while.
    Later,
    /// The socket is full: to be tried again when it is writable.
    Waiting,
    /// The client is gone.
    Closed,
}

impl Outbox {
    /// Queues an event that is for this client alone.
    pub fn push(&mut self, event: &Event) {
        self.push_below(OWN_LIMIT, &encode(event).into());
    }

    /// Queues a notification that goes to many clients.
    pub fn push_packet(&mut self, packet: &Arc<[u8]>) {
        // MUTATION: outbox.notifications_without_limit
        self.push_below(LIMIT, packet);
    }

    fn push_below(&mut self, limit: usize, packet: &Arc<[u8]>) {
        if self.waiting.len() < limit {
            self.waiting.push_back((Arc::clone(packet), None));
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// Queues an event with memory, to be answered with `token`. These are few, one for each
    /// connected client, and are never lost.
    pub fn push_with(&mut self, event: &Event, token: u64, memory: Arc<OwnedFd>) {
        self.waiting.push_back((encode(event).into(), Some((token, memory))));
    }

    /// Returns whether the event with memory and this `token` has not been sent.
    pub fn holds(&self, token: u64) -> bool {
        self.waiting.iter().any(|waiting| is_for(waiting, token))
    }

    /// Withdraws that event.
    pub fn cancel(&mut self, token: u64) {
        // MUTATION: outbox.memory_not_withdrawn
        self.waiting.retain(|waiting| !is_for(waiting, token));
    }

    /// Returns whether the socket may take an event that waits.
    pub fn can_flush(&self) -> bool {
        !self.blocked && !self.waiting.is_empty()
    }

    /// Sends as many events as `send` takes: a packet, and the memory that goes with it.
    pub fn flush(
        &mut self,
        send: impl FnMut(&[u8], &[BorrowedFd<'_>]) -> Result<(), SocketError>,
    ) -> FlushOutcome {
        let flushed = self.send_waiting(send);
        self.blocked = flushed == FlushOutcome::Waiting;
        flushed
    }

    fn send_waiting(
        &mut self,
        mut send: impl FnMut(&[u8], &[BorrowedFd<'_>]) -> Result<(), SocketError>,
    ) -> FlushOutcome {
        loop {
            if self.lost > 0 && self.waiting.len() < LIMIT {
                self.waiting.push_back((encode(&Event::Lost { events: self.lost }).into(), None));
                self.lost = 0;
            }
            let Some((packet, memory)) = self.waiting.front() else { return FlushOutcome::All };
            let memory: Option<BorrowedFd<'_>> = memory.as_ref().map(|(_, memory)| memory.as_fd());
            match send(packet, memory.as_slice()) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(SocketError::NotReady) => return FlushOutcome::Waiting,
                // No memory, or too many descriptors of this user in flight: not the client's
                // fault.
                Err(SocketError::Io(_)) => return FlushOutcome::Later,
                Err(_) => return FlushOutcome::Closed,
            }
        }
    }
}

fn is_for((_, memory): &Waiting, token: u64) -> bool {
    memory.as_ref().is_some_and(|(of, _)| *of == token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_notifications_leave_room_for_a_question() {
        let mut outbox = Outbox::default();
        let notification: Arc<[u8]> = encode(&Event::GraphOrder).into();
        for _ in 0..LIMIT + 3 {
            outbox.push_packet(&notification);
        }
        outbox.push(&Event::Quantum { frames: 64, token: 1 });
        let mut heard = Vec::new();
        // A socket with room for 100 packets, which the client reads at once.
        for _ in 0..LIMIT {
            let mut room = 100;
            let flushed = outbox.flush(|packet, _| {
                if room == 0 {
                    return Err(SocketError::NotReady);
                }
                room -= 1;
                heard.push(proto::decode(packet).unwrap());
                Ok(())
            });
            assert!(matches!(flushed, FlushOutcome::All | FlushOutcome::Waiting));
        }
        assert!(heard.contains(&Event::Lost { events: 3 }));
        let questions = heard.iter().filter(|event| matches!(event, Event::Quantum { .. })).count();
        assert_eq!((questions, heard.len()), (1, LIMIT + 2));
    }
}
