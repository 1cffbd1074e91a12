//! The rings in shared memory by which a program of libpulse sends its frames without a system
//! call, and gets those that it need not be woken for.
//!
//! Everything else goes through the socket, by which the program is woken: it could make an eventfd
//! block that this process writes. Its own, by which this process is woken, is never read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rt::shm::{MessageEnd, MessageRings, NoCount, Taken};
use sys::disposal::{DisposalQueue, Foreign};
use sys::memory::Shared;
use sys::poll::Waker;
use sys::socket::send_bytes;

use crate::wire::{DESCRIPTOR_BYTES, ring_offer};

/// This end of the rings.
#[derive(Debug)]
pub(super) struct MessageRing {
    rings: Shared<MessageRings>,
    end: MessageEnd,
    /// The program writes it when it rings. It can have its last close wait.
    eventfd: Foreign<Waker>,
    /// The program rings for what it sends next.
    listens: bool,
}

/// Rings that were offered, and the frame that is to follow on the socket.
pub(super) type Offer = (MessageRing, Vec<u8>);

impl MessageRing {
    /// Offers rings to a program whose socket has room for it. `None` if there is no memory,
    /// descriptor or room; then it goes on without.
    ///
    /// # Errors
    /// A frame was sent in part: the program cannot be understood any more.
    pub fn offer(socket: &UnixStream, queue: &DisposalQueue) -> io::Result<Option<Offer>> {
        let made = Shared::<MessageRings>::for_writers("consort-messages").ok();
        let wakers = Waker::new().and_then(|one| Ok((one, Waker::new()?))).ok();
        let (Some((rings, memfd)), Some((eventfd, other))) = (made, wakers) else {
            return Ok(None);
        };
        rings.describe();
        // The program has them as soon as they are sent.
        let (eventfd, other) = (queue.foreign(eventfd), queue.foreign(other));
        let (Some(rung), Some(of_program)) = (eventfd.get(), other.get()) else { return Ok(None) };
        let is_sent = send(socket, &ring_offer::memory(), &[memfd.as_fd()])?
            && send(socket, &ring_offer::eventfds(), &[rung.as_fd(), of_program.as_fd()])?;
        let this = Self { rings, end: MessageEnd::default(), eventfd, listens: false };
        Ok(is_sent.then(|| (this, ring_offer::place(MessageRings::BLOCK))))
    }

    /// Returns what the program writes when it rings.
    pub fn eventfd(&self) -> Option<&Waker> {
        self.eventfd.get()
    }

    /// Returns whether the program has sent bytes.
    pub fn has_bytes(&self) -> bool {
        self.rings.has_bytes()
    }

    /// Has the program ring for what it sends next; returns whether it has sent bytes already.
    pub fn listen(&mut self) -> bool {
        if !self.listens {
            self.listens = true;
            if self.rings.listen() {
                self.stop_listening();
            }
        }
        !self.listens
    }

    /// Has the program send without ringing.
    pub fn stop_listening(&mut self) {
        self.listens = false;
        self.rings.stop_listening();
    }

    /// Takes bytes that the program has sent.
    ///
    /// # Errors
    /// [`NoCount`]: the program has written what it may not.
    pub fn take(&mut self, room: &mut [u8]) -> Result<Taken, NoCount> {
        self.rings.take(&mut self.end, room)
    }

    /// Leaves a frame that is a descriptor alone for the program, until it wakes; returns whether
    /// it had room.
    ///
    /// # Errors
    /// [`NoCount`]: the program has written what it may not.
    pub fn leave(&mut self, frame: [u8; DESCRIPTOR_BYTES]) -> Result<bool, NoCount> {
        let mut words = [0; DESCRIPTOR_BYTES / 4];
        for (word, bytes) in words.iter_mut().zip(frame.as_chunks().0) {
            *word = u32::from_ne_bytes(*bytes);
        }
        self.rings.put(&mut self.end, words)
    }
}

/// Sends a frame with descriptors; returns whether there was room for it.
fn send(socket: &UnixStream, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<bool> {
    match send_bytes(socket, frame, descriptors) {
        Ok(sent) if sent < frame.len() => Err(io::ErrorKind::WriteZero.into()),
        sent => Ok(sent.is_ok()),
    }
}
