//! The socket of one program.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use sys::disposal::{DisposalQueue, Foreign};
use sys::memory::{Sealers, examine_unmapped, read_unmapped};
use sys::poll::{Event, Interest, Waker};
use sys::socket::receive_bytes;

use super::message_ring::MessageRing;
use super::socket::Socket;
use crate::wire::{self, Frame, FrameReader, Segment};

/// Bytes that are read at once, at most.
const READ_BYTES: usize = 64 << 10;
/// The same for what is mostly short.
const SHORT_BYTES: usize = 1 << 10;
/// Bytes that wait for a program that does not read.
const MAX_OUTBOX_BYTES: usize = 4 << 20;

/// Memory that is kept for what waits next.
const SPARE_OUTBOX_BYTES: usize = 16 << 10;

/// What has become of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Its program is gone, or cannot be understood, or does not read.
    Ended,
}

/// A program's connection. Nothing that its program chose is closed on this thread: neither the
/// socket, with what was not received, nor its memory.
#[derive(Debug)]
pub(super) struct Link {
    socket: Foreign<Socket>,
    queue: DisposalQueue,
    account: u32,
    connected_ns: u64,
    frames: FrameReader<Memory>,
    /// What was read of it when its turn was over.
    unhandled: Vec<u8>,
    /// What it has not taken yet.
    outbox: VecDeque<u8>,
    closes: bool,
    /// It is not read from.
    rests: bool,
    /// It has rested, and was not read from since.
    has_rested: bool,
    interest: Interest,
    rings: Rings,
    /// Its program sends nothing more.
    has_hung_up: bool,
    /// Its program has written what it may not.
    is_broken: bool,
}

/// By what a program sends.
#[derive(Debug)]
enum Rings {
    /// By its socket.
    None,
    /// The same, and it is asked for samples while it plays.
    Asked,
    /// The same, and it has answered: it runs, and is worth rings.
    Wanted,
    /// By its socket. It was offered rings, or cannot have them.
    Offered(Option<MessageRing>),
    /// By its ring, which cannot be read yet, behind what is left in its socket.
    Closing(MessageRing),
    /// By its ring, behind what is left in its socket.
    Begun(MessageRing),
    /// By its ring.
    Alone(MessageRing),
}

/// A segment of a program's memory.
#[derive(Debug)]
struct Memory(Foreign<OwnedFd>);

impl Segment for Memory {
    fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let memfd = self.0.get();
        memfd.and_then(|memfd| read_unmapped(memfd, offset, into).ok()).unwrap_or_default()
    }
}

impl Link {
    /// Takes a socket that does not block, of a program's account. What the program sends to be
    /// kept is closed by `queue`.
    pub fn new(
        socket: Foreign<Socket>,
        queue: DisposalQueue,
        account: u32,
        connected_ns: u64,
    ) -> Self {
        Self {
            socket,
            queue,
            account,
            connected_ns,
            frames: FrameReader::default(),
            unhandled: Vec::new(),
            outbox: VecDeque::new(),
            closes: false,
            rests: false,
            has_rested: false,
            interest: Interest::Readable,
            rings: Rings::None,
            has_hung_up: false,
            is_broken: false,
        }
    }

    /// Is not to be read from until it [wakes](Self::wake). Returns false if it has rested and was
    /// not read from since, however often it is to.
    pub fn rest(&mut self) -> bool {
        let begins = !self.has_rested;
        self.rests |= begins;
        self.has_rested = true;
        if matches!(self.rings, Rings::None) && self.frames.shares_memory() {
            self.rings = Rings::Asked;
        }
        if self.rests
            && let Some(ring) = self.ring()
        {
            ring.stop_listening();
        }
        begins
    }

    /// Offers rings to a program that is worth it, once, when all was sent. It goes on without them
    /// if that fails.
    pub fn offer_rings(&mut self, sealers: &Sealers) {
        if !self.outbox.is_empty() || !matches!(self.rings, Rings::Wanted) {
            return;
        }
        let Some(Socket::Unix(socket)) = self.socket.get() else { return };
        // Many programs may be worth it at once: then some are offered them later.
        let Some(sealer) = sealers.reserve() else { return };
        let offer = MessageRing::offer(socket, &self.queue, sealer);
        self.is_broken |= offer.is_err();
        let (ring, frame) = offer.ok().flatten().unzip();
        if let Some(frame) = frame {
            self.outbox.extend::<Vec<u8>>(frame);
            self.frames.offer_rings();
        }
        self.rings = Rings::Offered(ring);
    }

    /// Has the memory of the rings closed to writers, if its program has just accepted them.
    /// `waker` is woken when [that is known](Self::begin_rings).
    pub fn close_rings(&mut self, waker: &Arc<Waker>) -> State {
        if !self.frames.has_accepted_rings() || !matches!(self.rings, Rings::Offered(_)) {
            return State::Open;
        }
        match std::mem::replace(&mut self.rings, Rings::None) {
            Rings::Offered(Some(mut ring)) => {
                let closes = ring.close(waker);
                self.rings = Rings::Closing(ring);
                if closes { State::Open } else { State::Ended }
            }
            _ => State::Ended,
        }
    }

    /// Returns whether the memory of the rings is closed to writers, once, when that is known. If
    /// it is, they are read from then on.
    pub fn begin_rings(&mut self) -> Option<bool> {
        let Rings::Closing(ring) = &self.rings else { return None };
        let is_closed = ring.is_closed()?;
        self.rings = match std::mem::replace(&mut self.rings, Rings::None) {
            Rings::Closing(ring) if is_closed => Rings::Begun(ring),
            other => other,
        };
        Some(is_closed)
    }

    /// Returns what its program writes when it rings, once it has accepted the rings.
    pub fn eventfd(&self) -> Option<&Waker> {
        self.begun().and_then(MessageRing::eventfd)
    }

    fn begun(&self) -> Option<&MessageRing> {
        match &self.rings {
            Rings::Begun(ring) | Rings::Alone(ring) => Some(ring),
            _ => None,
        }
    }

    /// Returns its rings, once its program has accepted them.
    fn ring(&mut self) -> Option<&mut MessageRing> {
        match &mut self.rings {
            Rings::Begun(ring) | Rings::Alone(ring) => Some(ring),
            _ => None,
        }
    }

    /// Takes note of what has happened to it.
    pub fn note(&mut self, event: &Event) {
        self.has_hung_up |= event.closed;
        if event.readable
            && let Some(ring) = self.ring()
        {
            ring.stop_listening();
        }
    }

    /// Is read from again.
    pub fn wake(&mut self) {
        self.rests = false;
    }

    /// Returns its program's account.
    pub fn account(&self) -> u32 {
        self.account
    }

    /// Returns its socket.
    pub fn socket(&self) -> Option<&Socket> {
        self.socket.get()
    }

    /// Returns when it was accepted.
    pub fn connected_ns(&self) -> u64 {
        self.connected_ns
    }

    /// Its program has been answered that it may share memory.
    pub fn share_memory(&mut self) {
        self.frames.share_memory();
    }

    /// Returns whether it is to be read from at its next turn, whatever the poller says: frames of
    /// it wait, or it has rested, and is read from without another wait.
    pub fn awaits_turn(&self) -> bool {
        let has_news = !self.unhandled.is_empty() || self.has_rested || self.has_bytes_in_ring();
        has_news && self.may_be_read()
    }

    fn may_be_read(&self) -> bool {
        self.outbox.is_empty() && !self.rests && !self.closes
    }

    /// Has its program ring if it sends by a ring. Returns whether it is to be read from
    /// [already](Self::awaits_turn).
    pub fn listen(&mut self) -> bool {
        let may_be_read = self.may_be_read();
        let ring = self.ring().filter(|_| may_be_read);
        ring.is_some_and(MessageRing::listen) || self.awaits_turn()
    }

    /// Reads once, unless frames are left of the last time, and passes on those that there are, as
    /// long as `goes_on` says so.
    pub fn read(&mut self, goes_on: impl FnMut() -> bool, frame: impl FnMut(Frame<'_>)) -> State {
        self.has_rested = false;
        if self.closes {
            // It takes nothing any more, so what waits for it is not waited for.
            return if self.has_hung_up { State::Ended } else { State::Open };
        }
        if !self.unhandled.is_empty() {
            let bytes = std::mem::take(&mut self.unhandled);
            return self.handle(&bytes, goes_on, frame);
        }
        match self.frames.wanted() {
            wanted if wanted <= SHORT_BYTES => {
                self.read_into(&mut [0; SHORT_BYTES][..wanted], goes_on, frame)
            }
            wanted => {
                self.read_into(&mut [0; READ_BYTES][..wanted.min(READ_BYTES)], goes_on, frame)
            }
        }
    }

    /// Reads from the socket, or from the ring behind it.
    fn read_into(
        &mut self,
        bytes: &mut [u8],
        goes_on: impl FnMut() -> bool,
        frame: impl FnMut(Frame<'_>),
    ) -> State {
        // The program puts its first byte into the ring when it has sent its last one by socket.
        let is_in_ring = self.has_bytes_in_ring();
        if matches!(self.rings, Rings::Alone(_)) {
            return self.read_ring(bytes, goes_on, frame);
        }
        let Some(socket) = self.socket.get() else { return State::Ended };
        let mut descriptors = Vec::new();
        let received = receive_bytes(socket, bytes, &mut descriptors);
        // First of all, so that none is closed here.
        let memories = descriptors.into_iter().map(|memfd| Memory(self.queue.foreign(memfd)));
        for memory in memories.collect::<Vec<_>>() {
            // MUTATION: read_into.any_descriptor_is_kept
            let is_memory = memory.0.get().is_some_and(|memory| examine_unmapped(memory).is_ok());
            if !is_memory || self.frames.arrived(memory).is_err() {
                return State::Ended;
            }
        }
        match received {
            Err(error) if error.kind() == ErrorKind::Interrupted => State::Open,
            Err(error) if error.kind() == ErrorKind::WouldBlock && !is_in_ring => State::Open,
            Ok(0) | Err(_) if self.has_bytes_in_ring() => {
                self.leave_socket();
                self.read_ring(bytes, goes_on, frame)
            }
            Ok(0) => State::Ended,
            Ok(count) => self.handle(&bytes[..count], goes_on, frame),
            Err(_) => State::Ended,
        }
    }

    fn has_bytes_in_ring(&self) -> bool {
        self.begun().is_some_and(MessageRing::has_bytes)
    }

    /// Reads from the ring, once. From the socket comes nothing any more but its end.
    fn read_ring(
        &mut self,
        bytes: &mut [u8],
        goes_on: impl FnMut() -> bool,
        frame: impl FnMut(Frame<'_>),
    ) -> State {
        if !self.outbox.is_empty() && !self.has_hung_up {
            return State::Open;
        }
        let Some(Ok(taken)) = self.ring().map(|ring| ring.take(bytes)) else { return State::Ended };
        if taken.was_full {
            // It waits for room.
            self.outbox.extend(wire::nothing());
        }
        match taken.bytes {
            0 if self.has_hung_up => State::Ended,
            0 => State::Open,
            count => self.handle(&bytes[..count], goes_on, frame),
        }
    }

    fn handle(
        &mut self,
        bytes: &[u8],
        goes_on: impl FnMut() -> bool,
        frame: impl FnMut(Frame<'_>),
    ) -> State {
        let Ok(taken) = self.frames.push_while(goes_on, bytes, frame) else { return State::Ended };
        self.unhandled = bytes[taken..].into();
        if matches!(self.rings, Rings::Asked) {
            self.rings = Rings::Wanted;
        }
        if self.frames.has_many_to_release() {
            self.release();
            if self.outbox.is_empty() {
                self.outbox.extend(wire::nothing());
            }
        }
        State::Open
    }

    /// Nothing is left in the socket before what is in the ring.
    fn leave_socket(&mut self) {
        self.rings = match std::mem::replace(&mut self.rings, Rings::None) {
            Rings::Begun(ring) => Rings::Alone(ring),
            other => other,
        };
    }

    /// Releases what was read of the program's memory: it notices when it wakes next.
    fn release(&mut self) {
        let frames: Vec<_> = self.frames.take_releases().collect();
        for frame in frames {
            match self.ring().map_or(Ok(false), |ring| ring.leave(frame)) {
                Ok(true) => {}
                Ok(false) => self.outbox.extend(frame),
                Err(_) => self.is_broken = true,
            }
        }
    }

    /// Puts a packet into the outbox, after what releases the program's memory: it wakes once for
    /// both.
    pub fn send(&mut self, bytes: Vec<u8>) {
        self.release();
        self.outbox.extend(bytes);
    }

    /// Ends the connection once the outbox is empty.
    pub fn close_when_sent(&mut self) {
        self.closes = true;
    }

    /// Returns whether the program has taken everything.
    pub fn has_sent_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Returns the memory of what waits for its program, and of what came and is not handled,
    /// bytes.
    pub fn kept_bytes(&self) -> usize {
        self.outbox.capacity() + self.unhandled.len() + self.frames.kept_bytes()
    }

    /// Returns whether it is to be closed.
    pub fn waits(&self) -> bool {
        self.closes
    }

    /// Writes what the program takes.
    pub fn write(&mut self) -> State {
        let Some(mut socket) = self.socket.get() else { return State::Ended };
        while !self.outbox.is_empty() {
            match socket.write(self.outbox.make_contiguous()) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return State::Ended,
            }
        }
        if self.outbox.is_empty() && self.outbox.capacity() > SPARE_OUTBOX_BYTES {
            self.outbox = VecDeque::new();
        }
        let is_over = self.outbox.len() > MAX_OUTBOX_BYTES;
        let is_over = is_over || self.is_broken || (self.closes && self.outbox.is_empty());
        if is_over { State::Ended } else { State::Open }
    }

    /// Returns what to wait for, if that has changed. As long as a program does not read, it is not
    /// read from.
    pub fn changed_interest(&mut self) -> Option<Interest> {
        let is_read = !self.rests && !matches!(self.rings, Rings::Alone(_));
        let interest = match (self.outbox.is_empty(), !is_read) {
            (false, _) => Interest::Writable,
            (true, true) => Interest::Closed,
            (true, false) => Interest::Readable,
        };
        let has_changed = interest != self.interest;
        self.interest = interest;
        has_changed.then_some(interest)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.get() {
            socket.shut_down();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use sys::disposal::Disposal;

    use super::*;

    /// Returns a connection, its program's end, and what closes what the program chose.
    fn link() -> (Link, UnixStream, Disposal) {
        let (own, program) = UnixStream::pair().expect("a pair");
        own.set_nonblocking(true).expect("set");
        let disposal = Disposal::start().expect("a thread");
        let socket = disposal.queue().foreign(Socket::Unix(own));
        (Link::new(socket, disposal.queue(), 0, 0), program, disposal)
    }

    #[test]
    fn a_program_that_is_asked_all_the_time_is_read_from_in_between() {
        let (mut link, mut program, _disposal) = link();
        assert_eq!((link.rest(), link.changed_interest()), (true, Some(Interest::Closed)));
        link.wake();
        assert_eq!((link.rest(), link.changed_interest()), (false, Some(Interest::Readable)));
        program.write_all(&[0; 4]).expect("written");
        assert_eq!(link.read(|| true, |_| {}), State::Open);
        assert_eq!((link.rest(), link.changed_interest()), (true, Some(Interest::Closed)));
    }

    #[test]
    fn a_program_that_has_rested_is_read_from_without_another_wait() {
        let (mut link, _program, _disposal) = link();
        assert!(!link.awaits_turn());
        link.rest();
        assert!(!link.awaits_turn(), "it rests");
        link.wake();
        assert!(link.awaits_turn());
        assert_eq!(link.read(|| true, |_| {}), State::Open);
        assert!(!link.awaits_turn(), "it was read from, with nothing to read");
    }
}
