//! The socket of one program.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use sys::poll::Interest;

use super::socket::Socket;
use crate::wire::{Frame, FrameReader};

/// Bytes that are read at once, so that no program keeps the others waiting.
const READ_BYTES: usize = 64 << 10;
/// Bytes that wait for a program that does not read.
const MAX_OUTBOX_BYTES: usize = 4 << 20;

/// What has become of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Its program is gone, or cannot be understood, or does not read.
    Ended,
}

/// A program's connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: Socket,
    account: u32,
    connected_ns: u64,
    frames: FrameReader,
    /// What it has not taken yet.
    outbox: VecDeque<u8>,
    closes: bool,
    interest: Interest,
}

impl Link {
    /// Takes a socket that does not block, of a program's account.
    pub fn new(socket: Socket, account: u32, connected_ns: u64) -> Self {
        Self {
            socket,
            account,
            connected_ns,
            frames: FrameReader::default(),
            outbox: VecDeque::new(),
            closes: false,
            interest: Interest::Readable,
        }
    }

    /// Returns its program's account.
    pub fn account(&self) -> u32 {
        self.account
    }

    /// Returns when it was accepted.
    pub fn connected_ns(&self) -> u64 {
        self.connected_ns
    }

    /// Reads once, and passes on the frames that came.
    pub fn read(&mut self, frame: impl FnMut(Frame<'_>)) -> State {
        if self.closes {
            return State::Open;
        }
        let mut bytes = [0; READ_BYTES];
        match self.socket.read(&mut bytes) {
            Ok(0) => State::Ended,
            Ok(count) => match self.frames.push(&bytes[..count], frame) {
                Ok(()) => State::Open,
                Err(_) => State::Ended,
            },
            Err(error) if is_passing(error.kind()) => State::Open,
            Err(_) => State::Ended,
        }
    }

    /// Puts a packet into the outbox.
    pub fn send(&mut self, bytes: Vec<u8>) {
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

    /// Returns whether it is to be closed.
    pub fn waits(&self) -> bool {
        self.closes
    }

    /// Writes what the program takes.
    pub fn write(&mut self) -> State {
        while !self.outbox.is_empty() {
            match self.socket.write(self.outbox.as_slices().0) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return State::Ended,
            }
        }
        let is_over = self.outbox.len() > MAX_OUTBOX_BYTES;
        if is_over || (self.closes && self.outbox.is_empty()) { State::Ended } else { State::Open }
    }

    /// Returns what to wait for, if that has changed. As long as a program does not read, it is not
    /// read from.
    pub fn changed_interest(&mut self) -> Option<Interest> {
        let interest = if self.outbox.is_empty() { Interest::Readable } else { Interest::Writable };
        let has_changed = interest != self.interest;
        self.interest = interest;
        has_changed.then_some(interest)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::WouldBlock)
}
