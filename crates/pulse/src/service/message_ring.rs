//! The rings in shared memory by which a program of libpulse sends its frames without a system
//! call, and gets those that it need not be woken for.
//!
//! Everything else goes through the socket, by which the program is woken: it could make an eventfd
//! block that this process writes. The one by which this process is woken is never read. The memory
//! is not touched before it is closed to writers, which is waited for elsewhere: until then, the
//! program could discard its pages, and have an access wait for that.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rt::shm::{MessageEnd, MessageRings, NoCount, Taken};
use sys::disposal::{DisposalQueue, Foreign};
use sys::memory::{Sealer, Shared};
use sys::poll::Waker;
use sys::socket::send_bytes;

use crate::wire::{DESCRIPTOR_BYTES, ring_offer};

/// This end of the rings.
#[derive(Debug)]
pub(super) struct MessageRing {
    rings: Arc<Shared<MessageRings>>,
    /// Closed behind the mapping, and elsewhere: it can have that wait.
    memfd: Foreign<OwnedFd>,
    /// Room for the thread that closes the memory to writers.
    sealer: Option<Sealer>,
    /// Whether it has.
    closed: Option<Receiver<bool>>,
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
    pub fn offer(
        socket: &UnixStream,
        queue: &DisposalQueue,
        sealer: Sealer,
    ) -> io::Result<Option<Offer>> {
        let made = Shared::<MessageRings>::for_writers("consort-messages").ok();
        // Pages that are touched later stay as well.
        let made = made.filter(|(rings, _)| rings.lock_on_fault().is_ok());
        let wakers = Waker::new().and_then(|one| Ok((one, Waker::new()?))).ok();
        let (Some((rings, memfd)), Some((eventfd, other))) = (made, wakers) else {
            return Ok(None);
        };
        rings.describe();
        // The program has them as soon as they are sent.
        let (memfd, eventfd, other) =
            (queue.foreign(memfd), queue.foreign(eventfd), queue.foreign(other));
        let (Some(memory), Some(rung), Some(of_program)) =
            (memfd.get(), eventfd.get(), other.get())
        else {
            return Ok(None);
        };
        let is_sent = send(socket, &ring_offer::memory(), &[memory.as_fd()])?
            && send(socket, &ring_offer::eventfds(), &[rung.as_fd(), of_program.as_fd()])?;
        let this = Self {
            rings: Arc::new(rings),
            memfd,
            sealer: Some(sealer),
            closed: None,
            end: MessageEnd::default(),
            eventfd,
            listens: false,
        };
        Ok(is_sent.then(|| (this, ring_offer::place(MessageRings::BLOCK))))
    }

    /// The program has accepted the offer, and has the memory: has it closed to writers. `waker` is
    /// woken when [`is_closed`](Self::is_closed) knows. Returns false if there is no thread for it.
    pub fn close(&mut self, waker: &Arc<Waker>) -> bool {
        let (sender, closed) = channel();
        let waker = Arc::clone(waker);
        let done = move |is_closed| {
            // The connection may have ended meanwhile.
            let _ = sender.send(is_closed);
            waker.wake();
        };
        self.closed = Some(closed);
        self.sealer.take().zip(self.memfd.get()).is_some_and(|(sealer, memfd)| {
            sealer.close(Arc::clone(&self.rings), memfd, done).is_ok()
        })
    }

    /// Returns whether the memory is closed to writers, once, when that is known.
    pub fn is_closed(&self) -> Option<bool> {
        self.closed.as_ref()?.try_recv().ok()
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
