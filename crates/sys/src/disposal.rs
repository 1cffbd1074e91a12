//! Closes descriptors that a peer chose, on threads that nothing waits for.
//!
//! What the last close of a descriptor costs is its sender's choice: a TCP socket lingers for as
//! long as its owner has set, a file of a FUSE mount waits for the sender's daemon, and a socket
//! with unread packets closes whatever is in them. A thread that serves others therefore closes
//! nothing that came from a peer: not the descriptors of its packets, and not its sockets.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How long descriptors may wait before there is another thread.
const PATIENCE_NS: u64 = 250_000_000;
/// Threads that may be kept by closes that do not end. What comes after stays open until one ends.
const MOST_THREADS: usize = 16;

/// The threads that close descriptors.
#[derive(Debug)]
pub struct Disposal {
    queue: DisposalQueue,
    received: Arc<Mutex<Receiver<OwnedFd>>>,
    threads: usize,
    /// Since when there has always been a descriptor that waits, or since the last thread was
    /// added.
    waiting_since_ns: Option<u64>,
}

/// Where descriptors wait to be closed.
#[derive(Debug, Clone)]
pub struct DisposalQueue {
    sender: Sender<OwnedFd>,
    /// Descriptors that wait.
    waiting: Arc<AtomicUsize>,
}

/// A descriptor, or what consists of one, that a peer chose. Dropping it passes it on to be closed.
#[derive(Debug)]
pub struct Foreign<T: Into<OwnedFd>> {
    /// `None` once it has been taken.
    inner: Option<T>,
    queue: DisposalQueue,
}

impl DisposalQueue {
    /// Takes charge of what a peer chose.
    pub fn foreign<T: Into<OwnedFd>>(&self, inner: T) -> Foreign<T> {
        Foreign { inner: Some(inner), queue: self.clone() }
    }
}

impl Disposal {
    /// Starts the first thread.
    ///
    /// # Errors
    /// If the kernel has no thread left.
    pub fn start() -> std::io::Result<Self> {
        let (sender, received) = channel();
        let queue = DisposalQueue { sender, waiting: Arc::default() };
        let received = Arc::new(Mutex::new(received));
        let mut disposal = Self { queue, received, threads: 0, waiting_since_ns: None };
        disposal.add_thread()?;
        Ok(disposal)
    }

    /// Returns the queue.
    pub fn queue(&self) -> DisposalQueue {
        self.queue.clone()
    }

    /// Adds a thread if descriptors have been waiting for too long.
    pub fn step(&mut self, now_ns: u64) {
        // Relaxed, here and below: a count, which says nothing about other memory.
        if self.queue.waiting.load(Ordering::Relaxed) == 0 {
            self.waiting_since_ns = None;
            return;
        }
        let since_ns = *self.waiting_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= PATIENCE_NS && self.threads < MOST_THREADS {
            // Without a thread left, what waits is closed when one of the others comes back.
            // MUTATION: disposal.one_thread_only
            let _ = self.add_thread();
            self.waiting_since_ns = Some(now_ns);
        }
    }

    fn add_thread(&mut self) -> std::io::Result<()> {
        let (received, waiting) = (Arc::clone(&self.received), Arc::clone(&self.queue.waiting));
        let thread = std::thread::Builder::new().name("consort-disposal".into());
        thread.spawn(move || close_all(&received, &waiting))?;
        self.threads += 1;
        Ok(())
    }
}

/// The lock is held only while a thread waits for a descriptor, never while it closes one.
fn close_all(received: &Mutex<Receiver<OwnedFd>>, waiting: &AtomicUsize) {
    let next = || received.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(descriptor) = next() {
        waiting.fetch_sub(1, Ordering::Relaxed);
        drop(descriptor);
    }
}

impl<T: Into<OwnedFd>> Foreign<T> {
    /// Returns what it holds. The caller knows that its close does not block.
    pub fn into_inner(mut self) -> Option<T> {
        self.inner.take()
    }

    /// Returns what it holds; `None` only after [`into_inner`](Self::into_inner).
    pub fn get(&self) -> Option<&T> {
        self.inner.as_ref()
    }
}

impl<T: Into<OwnedFd>> Drop for Foreign<T> {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            self.queue.waiting.fetch_add(1, Ordering::Relaxed);
            // Fails only without a thread that could close it, and these last as long as the
            // server.
            // MUTATION: foreign.closed_at_once, foreign.memory_closed_at_once
            // MUTATION: foreign.silent_file_closed_at_once
            let _ = self.queue.sender.send(inner.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::{Duration, Instant};

    use crate::clock::now_ns;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A connected TCP socket whose close lasts for `linger_s` seconds, and its other end.
    fn lingering(linger_s: u64) -> (OwnedFd, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let mut socket = std::net::TcpStream::connect(address).expect("connects");
        let (other, _) = listener.accept().expect("accepts");
        let linger = Some(Duration::from_secs(linger_s));
        rustix::net::sockopt::set_socket_linger(&socket, linger).expect("an option");
        socket.set_nonblocking(true).expect("an option");
        while socket.write(&[0; 65_536]).is_ok() {}
        socket.set_nonblocking(false).expect("an option");
        (socket.into(), other)
    }

    #[test]
    fn what_a_peer_chose_is_closed_elsewhere() {
        let disposal = Disposal::start().expect("a thread");
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        drop(disposal.queue().foreign(OwnedFd::from(writer)));
        assert_eq!(reader.read(&mut [0]).expect("the end"), 0);
    }

    #[test]
    fn a_close_that_lasts_holds_up_no_other() {
        let mut disposal = Disposal::start().expect("a thread");
        let (socket, _other) = lingering(120);
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let begun = Instant::now();
        drop(disposal.queue().foreign(socket));
        drop(disposal.queue().foreign(OwnedFd::from(writer)));
        assert!(begun.elapsed() < PATIENCE, "handing over waits for nothing");
        let closed = std::thread::spawn(move || reader.read(&mut [0]).expect("the end"));
        while !closed.is_finished() {
            disposal.step(now_ns());
            assert!(begun.elapsed() < PATIENCE, "the pipe is still open");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
