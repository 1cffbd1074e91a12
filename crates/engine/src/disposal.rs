//! Closes descriptors that a peer chose, on threads that nothing waits for.
//!
//! What the last close of a descriptor costs is its sender's choice: a TCP socket lingers for as
//! long as it was told to, a file of a FUSE mount waits for the sender's daemon, and a socket with
//! unread packets closes whatever is in them. The control thread therefore closes nothing that came
//! from a peer: not the descriptors of its packets, and not its sockets.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use sys::clock::now_ns;

/// A close that takes longer has its thread to itself from then on.
const PATIENCE_NS: u64 = 250_000_000;
/// Threads that may be kept by closes that do not end. What comes after stays open until one ends.
const MOST_THREADS: usize = 16;

/// The threads that close descriptors.
#[derive(Debug)]
pub struct Disposal {
    queue: DisposalQueue,
    waiting: Arc<Mutex<Receiver<OwnedFd>>>,
    closers: Vec<Closer>,
}

/// Where descriptors wait to be closed.
#[derive(Debug, Clone)]
pub struct DisposalQueue(Sender<OwnedFd>);

/// One thread: since when it has been closing its present descriptor, ns; 0: it waits for one.
#[derive(Debug, Default)]
struct Closer(Arc<AtomicU64>);

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
        let (queue, waiting) = channel();
        let (queue, waiting) = (DisposalQueue(queue), Arc::new(Mutex::new(waiting)));
        let mut disposal = Self { queue, waiting, closers: Vec::new() };
        disposal.add_thread()?;
        Ok(disposal)
    }

    /// Returns the queue.
    pub fn queue(&self) -> DisposalQueue {
        self.queue.clone()
    }

    /// Adds a thread if closes that do not end keep all others.
    pub fn step(&mut self, now_ns: u64) {
        let is_kept = |closer: &Closer| closer.is_kept(now_ns);
        if self.closers.len() < MOST_THREADS && self.closers.iter().all(is_kept) {
            // Without a thread left, what waits is closed when one of the others comes back.
            let _ = self.add_thread();
        }
    }

    fn add_thread(&mut self) -> std::io::Result<()> {
        let closer = Closer::default();
        let (since_ns, waiting) = (Arc::clone(&closer.0), Arc::clone(&self.waiting));
        let thread = std::thread::Builder::new().name("consort-disposal".into());
        thread.spawn(move || close_all(&waiting, &since_ns))?;
        self.closers.push(closer);
        Ok(())
    }
}

impl Closer {
    fn is_kept(&self, now_ns: u64) -> bool {
        // Relaxed: only the time itself matters.
        let since_ns = self.0.load(Ordering::Relaxed);
        since_ns != 0 && now_ns.saturating_sub(since_ns) > PATIENCE_NS
    }
}

/// The lock is held only while a thread waits for a descriptor, never while it closes one.
fn close_all(waiting: &Mutex<Receiver<OwnedFd>>, since_ns: &AtomicU64) {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(descriptor) = next() {
        since_ns.store(now_ns().max(1), Ordering::Relaxed);
        drop(descriptor);
        since_ns.store(0, Ordering::Relaxed);
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
            // Fails only without a thread that could close it, and these last as long as the
            // server.
            let _ = self.queue.0.send(inner.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::{Duration, Instant};

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
