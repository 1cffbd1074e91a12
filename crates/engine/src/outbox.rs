//! Events on their way to a client that may not be reading: the server never waits for it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use proto::encode;
use proto::event::Event;
use sys::socket::{Connection, SocketError};

/// Notifications that wait for a client; more are lost, and it is told how many.
const LIMIT: usize = 4096;
/// What concerns this client alone finds room beside those: questions to it, without whose answer it may not go on. There
/// are a few at a time; so many only of a client that answers none.
const OWN_LIMIT: usize = 2 * LIMIT;

/// A packet, and the memory that goes with it, with the token of the answer.
type Waiting = (Arc<[u8]>, Option<(u64, Arc<OwnedFd>)>);

/// A client's event socket and what waits to go into it.
#[derive(Debug)]
pub struct Outbox {
    socket: Connection,
    waiting: VecDeque<Waiting>,
    lost: u32,
    /// The socket was full: the poller tells when it is not.
    blocked: bool,
}

/// How sending went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// Nothing waits.
    All,
    /// The system has no room for more, whoever is to have it: to be tried again after a while.
    Later,
    /// The socket is full: to be tried again when it is writable.
    Waiting,
    /// The client is gone.
    Closed,
}

impl Outbox {
    /// An empty outbox.
    pub fn new(socket: Connection) -> Self {
        Self { socket, waiting: VecDeque::new(), lost: 0, blocked: false }
    }

    /// The socket, for polling and for the client's answers.
    pub fn socket(&self) -> &Connection {
        &self.socket
    }

    /// Puts an event in line that is for this client alone.
    pub fn push(&mut self, event: &Event) {
        self.push_below(OWN_LIMIT, &encode(event).into());
    }

    /// Puts a notification in line that goes to many clients.
    pub fn push_packet(&mut self, packet: &Arc<[u8]>) {
        self.push_below(LIMIT, packet);
    }

    fn push_below(&mut self, limit: usize, packet: &Arc<[u8]>) {
        if self.waiting.len() < limit {
            self.waiting.push_back((Arc::clone(packet), None));
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// Puts an event with memory in line, to be answered with `token`. These are few, one for each connected
    /// client, and are never lost.
    pub fn push_with(&mut self, event: &Event, token: u64, memory: Arc<OwnedFd>) {
        self.waiting.push_back((encode(event).into(), Some((token, memory))));
    }

    /// Whether the event with memory that is to be answered with `token` was not sent yet.
    pub fn holds(&self, token: u64) -> bool {
        self.waiting.iter().any(|waiting| is_for(waiting, token))
    }

    /// Takes that event back.
    pub fn cancel(&mut self, token: u64) {
        self.waiting.retain(|waiting| !is_for(waiting, token));
    }

    /// Whether there is something that the socket may take.
    pub fn can_flush(&self) -> bool {
        !self.blocked && !self.waiting.is_empty()
    }

    /// Sends what the socket takes.
    pub fn flush(&mut self) -> Flushed {
        let flushed = self.send_waiting();
        self.blocked = flushed == Flushed::Waiting;
        flushed
    }

    fn send_waiting(&mut self) -> Flushed {
        loop {
            if self.lost > 0 && self.waiting.len() < LIMIT {
                self.waiting.push_back((encode(&Event::Lost { events: self.lost }).into(), None));
                self.lost = 0;
            }
            let Some((packet, memory)) = self.waiting.front() else { return Flushed::All };
            let memory: Option<BorrowedFd<'_>> = memory.as_ref().map(|(_, memory)| memory.as_fd());
            match self.socket.try_send(packet, memory.as_slice()) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(SocketError::NotReady) => return Flushed::Waiting,
                // No memory, or too many descriptors of this user on their way between programs: not this client's doing.
                Err(SocketError::Io(_)) => return Flushed::Later,
                Err(_) => return Flushed::Closed,
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
    fn a_question_to_a_client_finds_room_beside_the_notifications_that_it_does_not_read() {
        let (ours, theirs) = Connection::pair().unwrap();
        let mut outbox = Outbox::new(ours);
        let notification: Arc<[u8]> = encode(&Event::GraphOrder).into();
        for _ in 0..LIMIT + 3 {
            outbox.push_packet(&notification);
        }
        outbox.push(&Event::Quantum { frames: 64, token: 1 });
        let mut heard = Vec::new();
        let mut room = vec![0; proto::MAX_PACKET_BYTES];
        while outbox.flush() == Flushed::Waiting || !heard.contains(&Event::Lost { events: 3 }) {
            while let Ok(received) = theirs.try_receive(&mut room) {
                heard.push(proto::decode(&room[..received.bytes]).unwrap());
            }
        }
        let questions = heard.iter().filter(|event| matches!(event, Event::Quantum { .. })).count();
        assert_eq!((questions, heard.len()), (1, LIMIT + 2));
    }
}
