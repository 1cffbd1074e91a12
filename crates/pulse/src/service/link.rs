//! The socket of one program.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;

use sys::disposal::{DisposalQueue, Foreign};
use sys::memory::{examine_unmapped, read_unmapped};
use sys::poll::Interest;
use sys::socket::receive_bytes;

use super::socket::Socket;
use crate::wire::{Frame, FrameReader, Segment};

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
}

/// A segment of a program's memory.
#[derive(Debug)]
struct Memory(Foreign<OwnedFd>);

impl Segment for Memory {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> usize {
        self.0.get().and_then(|memfd| read_unmapped(memfd, offset, bytes).ok()).unwrap_or(0)
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
        }
    }

    /// Is not to be read from until it [wakes](Self::wake). Returns false if it has rested and was
    /// not read from since, however often it is to.
    pub fn rest(&mut self) -> bool {
        let begins = !self.has_rested;
        self.rests |= begins;
        self.has_rested = true;
        begins
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

    /// Returns whether frames of it wait for its next turn, and nothing else.
    pub fn awaits_turn(&self) -> bool {
        !self.unhandled.is_empty() && self.outbox.is_empty() && !self.rests && !self.closes
    }

    /// Reads once, unless frames are left of the last time, and passes on those that there are, as
    /// long as `goes_on` says so.
    pub fn read(&mut self, goes_on: impl FnMut() -> bool, frame: impl FnMut(Frame<'_>)) -> State {
        self.has_rested = false;
        if self.closes {
            return State::Open;
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

    fn read_into(
        &mut self,
        bytes: &mut [u8],
        goes_on: impl FnMut() -> bool,
        frame: impl FnMut(Frame<'_>),
    ) -> State {
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
            Ok(0) => State::Ended,
            Ok(count) => self.handle(&bytes[..count], goes_on, frame),
            Err(error) if is_passing(error.kind()) => State::Open,
            Err(_) => State::Ended,
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
        if self.frames.has_many_to_release() {
            self.outbox.extend(self.frames.take_releases());
        }
        State::Open
    }

    /// Puts a packet into the outbox, after what releases the program's memory: it wakes once for
    /// both.
    pub fn send(&mut self, bytes: Vec<u8>) {
        self.outbox.extend(self.frames.take_releases());
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
        if is_over || (self.closes && self.outbox.is_empty()) { State::Ended } else { State::Open }
    }

    /// Returns what to wait for, if that has changed. As long as a program does not read, it is not
    /// read from.
    pub fn changed_interest(&mut self) -> Option<Interest> {
        let interest = match (self.outbox.is_empty(), self.rests) {
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

fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use sys::disposal::Disposal;

    use super::*;

    #[test]
    fn a_program_that_is_asked_all_the_time_is_read_from_in_between() {
        let (own, mut program) = UnixStream::pair().expect("a pair");
        own.set_nonblocking(true).expect("set");
        let disposal = Disposal::start().expect("a thread");
        let socket = disposal.queue().foreign(Socket::Unix(own));
        let mut link = Link::new(socket, disposal.queue(), 0, 0);
        assert_eq!((link.rest(), link.changed_interest()), (true, Some(Interest::Closed)));
        link.wake();
        assert_eq!((link.rest(), link.changed_interest()), (false, Some(Interest::Readable)));
        program.write_all(&[0; 4]).expect("written");
        assert_eq!(link.read(|| true, |_| {}), State::Open);
        assert_eq!((link.rest(), link.changed_interest()), (true, Some(Interest::Closed)));
    }
}
