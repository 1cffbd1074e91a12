//! One end of a connection.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
    SocketType, connect, recvmsg, sendmsg, socket_with, socketpair,
};

use super::SocketError;
use crate::clock;
use crate::poll::wait_for;

/// How many descriptors one message can carry.
pub const MAX_DESCRIPTORS: usize = 16;

pub(super) const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS));
/// Room for as many descriptors as one message can carry (`SCM_MAX_FD`): the kernel closes those
/// that find no room, on the receiving thread, which then pays for what the sender chose.
pub(super) const RECEIVED_CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(253));

/// A message that has arrived completely.
#[derive(Debug)]
pub struct Received {
    /// Its length in the buffer; never 0.
    pub bytes: usize,
    /// The descriptors that came with it, in the sender's order, close-on-exec; at most
    /// [`MAX_DESCRIPTORS`].
    pub descriptors: Vec<OwnedFd>,
}

/// A connected `SOCK_SEQPACKET` socket. The socket itself never blocks: each call says whether to
/// wait.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
}

impl Connection {
    /// Connects to the [`Listener`](super::Listener) at `path`, waiting for room in its queue until
    /// `deadline_ns`.
    ///
    /// # Errors
    /// [`SocketError::NotReady`] once the deadline has passed, and those of `connect`: `NotFound`
    /// or `ConnectionRefused` if no process listens there.
    pub fn connect(path: &Path, deadline_ns: Option<u64>) -> Result<Self, SocketError> {
        let address = SocketAddrUnix::new(path)?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        loop {
            // A Unix connect waits only for a full queue; it obeys the send timeout (socket(7)).
            set_socket_timeout(&socket, Timeout::Send, connect_timeout(deadline_ns))?;
            match connect(&socket, &address) {
                Ok(()) => return Ok(Self { socket }),
                Err(Errno::INTR) if !clock::has_passed(deadline_ns) => {}
                Err(Errno::INTR) => return Err(SocketError::NotReady),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Returns two connected ends.
    ///
    /// # Errors
    /// The errors of `socketpair`: no descriptor or memory left.
    pub fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Self::from_socket(one), Self::from_socket(other)))
    }

    pub(super) fn from_socket(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Sends one message if there is room for it now. Descriptors are duplicated into it; the
    /// caller keeps its own.
    ///
    /// # Errors
    /// [`SocketError::NotReady`] if the other end's queue is full,
    /// [`SocketError::TooManyDescriptors`] above [`MAX_DESCRIPTORS`]; nothing was sent then.
    pub fn try_send(
        &self,
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SocketError> {
        if message.is_empty() {
            return Err(SocketError::Empty);
        }
        if descriptors.len() > MAX_DESCRIPTORS {
            return Err(SocketError::TooManyDescriptors);
        }
        let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(SocketError::TooManyDescriptors);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        retry_on_intr(|| sendmsg(&self.socket, &[IoSlice::new(message)], &mut control, flags))?;
        Ok(())
    }

    /// Sends one message, waiting for room until `deadline_ns`.
    ///
    /// # Errors
    /// Same as [`Connection::try_send`]; [`SocketError::NotReady`] once the deadline has passed.
    pub fn send_until(
        &self,
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<(), SocketError> {
        self.until(PollFlags::OUT, deadline_ns, || self.try_send(message, descriptors))
    }

    /// Returns whether a message waits to be received, or the other end is closed.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        // Fails only without memory in the kernel.
        wait_for(self.socket.as_fd(), PollFlags::IN, Some(0)).unwrap_or(false)
    }

    /// Receives the next message into `buffer` if there is one.
    ///
    /// # Errors
    /// [`SocketError::NotReady`] if there is none, [`SocketError::Closed`] after the last one,
    /// [`SocketError::TooLong`] and [`SocketError::TooManyDescriptors`] if it did not fit: then it
    /// is lost, with every descriptor that came with it closed; [`SocketError::NoDescriptor`] if
    /// only its descriptors are lost.
    pub fn try_receive(&self, buffer: &mut [u8]) -> Result<Received, SocketError> {
        let mut descriptors = Vec::new();
        let bytes = self.try_receive_with(buffer, &mut descriptors)?;
        Ok(Received { bytes, descriptors })
    }

    /// Receives like [`try_receive`](Self::try_receive), and closes nothing: all descriptors that
    /// came with the message are added to `descriptors`, also if it is refused. For a receiver that
    /// must not be held up by the close of what the sender chose.
    ///
    /// # Errors
    /// Same as [`try_receive`](Self::try_receive).
    pub fn try_receive_with(
        &self,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Result<usize, SocketError> {
        let mut space = [MaybeUninit::uninit(); RECEIVED_CONTROL_BYTES];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let mut parts = [IoSliceMut::new(buffer)];
        let message = retry_on_intr(|| recvmsg(&self.socket, &mut parts, &mut control, flags))?;
        let before = descriptors.len();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                descriptors.extend(rights);
            }
        }
        let received = descriptors.len() - before;
        if received > MAX_DESCRIPTORS {
            return Err(SocketError::TooManyDescriptors);
        }
        if message.flags.contains(ReturnFlags::TRUNC) {
            return Err(SocketError::TooLong);
        }
        // There was room for all that one message can carry.
        if message.flags.contains(ReturnFlags::CTRUNC) {
            return Err(SocketError::NoDescriptor { bytes: message.bytes });
        }
        if message.bytes == 0 {
            return Err(SocketError::Closed);
        }
        Ok(message.bytes)
    }

    /// Receives the next message into `buffer`, waiting for it until `deadline_ns`.
    ///
    /// # Errors
    /// Same as [`Connection::try_receive`]; [`SocketError::NotReady`] once the deadline has passed.
    pub fn receive_until(
        &self,
        buffer: &mut [u8],
        deadline_ns: Option<u64>,
    ) -> Result<Received, SocketError> {
        self.until(PollFlags::IN, deadline_ns, || self.try_receive(buffer))
    }

    /// Repeats `attempt` whenever the socket is ready again, at least once.
    fn until<T>(
        &self,
        ready: PollFlags,
        deadline_ns: Option<u64>,
        mut attempt: impl FnMut() -> Result<T, SocketError>,
    ) -> Result<T, SocketError> {
        loop {
            match attempt() {
                Err(SocketError::NotReady) => {}
                decided => return decided,
            }
            if !wait_for(self.as_fd(), ready, deadline_ns)? {
                return Err(SocketError::NotReady);
            }
        }
    }
}

impl Connection {
    /// Ends the connection in both directions, so that the peer notices it before the socket is
    /// closed. What was sent can still be received. Does not block.
    pub fn shut_down(&self) {
        // Fails only if the peer has gone.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Wraps a socket from another source, such as a service manager. It must be a connected
/// `SOCK_SEQPACKET` socket.
impl From<OwnedFd> for Connection {
    fn from(socket: OwnedFd) -> Self {
        Self { socket }
    }
}

/// For a child process that gets this end as its standard input.
impl From<Connection> for OwnedFd {
    fn from(connection: Connection) -> Self {
        connection.socket
    }
}

fn connect_timeout(deadline_ns: Option<u64>) -> Option<Duration> {
    // The socket option counts in microseconds, and zero means "forever".
    const SHORTEST: Duration = Duration::from_micros(1);
    deadline_ns.map(|deadline_ns| {
        Duration::from_nanos(deadline_ns.saturating_sub(clock::now_ns())).max(SHORTEST)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::io::{FdFlags, fcntl_getfd};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::forked;

    const SOON_NS: u64 = 3_000_000;
    const LONG_NS: u64 = 20_000_000_000;

    fn soon() -> Option<u64> {
        Some(clock::now_ns() + SOON_NS)
    }

    /// A pipe whose reader sees when the last duplicate of its writing end is closed.
    fn pipe() -> (io::PipeReader, OwnedFd) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, writer.into())
    }

    /// Returns whether no duplicate of the writing end is open within `patience_ns`: a program that
    /// another test starts holds one for a moment.
    fn all_closed(reader: &io::PipeReader, patience_ns: u64) -> bool {
        wait_for(reader.as_fd(), PollFlags::IN, Some(clock::now_ns() + patience_ns)).unwrap()
    }

    #[test]
    fn whole_messages_arrive_in_order() {
        let (one, other) = Connection::pair().unwrap();
        one.try_send(b"first", &[]).unwrap();
        one.try_send(b"the second", &[]).unwrap();
        let mut buffer = [0; 64];
        for sent in [&b"first"[..], b"the second"] {
            let received = other.receive_until(&mut buffer, None).unwrap();
            assert_eq!(&buffer[..received.bytes], sent);
            assert!(received.descriptors.is_empty());
        }
        assert!(matches!(other.try_receive(&mut buffer), Err(SocketError::NotReady)));
    }

    #[test]
    fn descriptors_arrive_in_order() {
        let (one, other) = Connection::pair().unwrap();
        let (null, zero) = (File::open("/dev/null").unwrap(), File::open("/dev/zero").unwrap());
        one.try_send(b"x", &[null.as_fd(), zero.as_fd()]).unwrap();
        let received = other.try_receive(&mut [0; 8]).unwrap();
        let device = |fd: &dyn AsFd| rustix::fs::fstat(fd.as_fd()).unwrap().st_rdev;
        let devices: Vec<_> = received.descriptors.iter().map(|fd| device(fd)).collect();
        assert_eq!(devices, [device(&null), device(&zero)]);
        for descriptor in &received.descriptors {
            assert!(fcntl_getfd(descriptor).unwrap().contains(FdFlags::CLOEXEC));
        }
    }

    #[test]
    fn as_many_descriptors_as_promised_fit() {
        let (one, other) = Connection::pair().unwrap();
        let null = File::open("/dev/null").unwrap();
        one.try_send(b"x", &[null.as_fd(); MAX_DESCRIPTORS]).unwrap();
        assert_eq!(other.try_receive(&mut [0; 8]).unwrap().descriptors.len(), MAX_DESCRIPTORS);
        let refused = one.try_send(b"x", &[null.as_fd(); MAX_DESCRIPTORS + 1]);
        assert!(matches!(refused, Err(SocketError::TooManyDescriptors)));
    }

    /// Sends more descriptors than [`Connection::try_send`] would.
    fn send_rudely(to: &Connection, message: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space =
            vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(descriptors.len()))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        sendmsg(&to.socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    #[test]
    fn too_many_descriptors_leak_none() {
        for count in [MAX_DESCRIPTORS + 1, MAX_DESCRIPTORS + 2, MAX_DESCRIPTORS + 3, 253] {
            let (one, other) = Connection::pair().unwrap();
            let (reader, writer) = pipe();
            send_rudely(&one, b"x", &vec![writer.as_fd(); count]);
            drop(writer);
            assert!(!all_closed(&reader, 0), "{count}");
            let refused = other.try_receive(&mut [0; 8]);
            assert!(matches!(refused, Err(SocketError::TooManyDescriptors)), "{count}");
            assert!(all_closed(&reader, LONG_NS), "{count}");
        }
    }

    #[test]
    fn descriptors_that_this_process_may_not_open_are_an_error() {
        let (one, other) = Connection::pair().unwrap();
        one.try_send(b"x", &[one.as_fd()]).unwrap();
        let status = forked::exit_status(|| {
            let maximum = getrlimit(Resource::Nofile).maximum;
            setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum }).is_ok_and(|()| {
                let mut buffer = [0; 8];
                let refused = other.try_receive(&mut buffer);
                matches!(refused, Err(SocketError::NoDescriptor { bytes: 1 })) && buffer[0] == b'x'
            }) as u8
        });
        assert_eq!(status, 1);
    }

    #[test]
    fn a_message_that_is_too_long_leaks_no_descriptor() {
        let (one, other) = Connection::pair().unwrap();
        let (reader, writer) = pipe();
        one.try_send(b"123456789", &[writer.as_fd()]).unwrap();
        one.try_send(b"12345678", &[]).unwrap();
        drop(writer);
        let mut buffer = [0; 8];
        assert!(matches!(other.try_receive(&mut buffer), Err(SocketError::TooLong)));
        assert!(all_closed(&reader, LONG_NS));
        assert_eq!(other.try_receive(&mut buffer).unwrap().bytes, 8);
    }

    #[test]
    fn the_end_of_a_connection_follows_the_last_message() {
        let (one, other) = Connection::pair().unwrap();
        one.try_send(b"last", &[]).unwrap();
        drop(one);
        let mut buffer = [0; 8];
        assert_eq!(other.receive_until(&mut buffer, None).unwrap().bytes, 4);
        assert!(matches!(other.receive_until(&mut buffer, None), Err(SocketError::Closed)));
        assert!(matches!(other.send_until(b"x", &[], None), Err(SocketError::Closed)));
    }

    #[test]
    fn an_empty_message_is_not_sent() {
        let (one, _other) = Connection::pair().unwrap();
        assert!(matches!(one.try_send(b"", &[]), Err(SocketError::Empty)));
    }

    #[test]
    fn waiting_for_a_silent_peer_ends_at_the_deadline() {
        let (one, _other) = Connection::pair().unwrap();
        let deadline_ns = soon();
        assert!(matches!(one.receive_until(&mut [0; 8], deadline_ns), Err(SocketError::NotReady)));
        assert!(clock::has_passed(deadline_ns));
    }

    #[test]
    fn a_peer_that_does_not_read_delays_a_send_only_until_the_deadline() {
        let (one, other) = Connection::pair().unwrap();
        let message = [0; 4096];
        let refused = loop {
            if let Err(error) = one.try_send(&message, &[]) {
                break error;
            }
        };
        assert!(matches!(refused, SocketError::NotReady));
        assert!(matches!(one.send_until(&message, &[], soon()), Err(SocketError::NotReady)));
        let mut buffer = [0; 4096];
        while other.try_receive(&mut buffer).is_ok() {}
        one.send_until(&message, &[], None).unwrap();
    }

    #[test]
    fn a_message_beyond_what_the_kernel_sends_in_one_piece_is_refused() {
        let (one, _other) = Connection::pair().unwrap();
        assert!(matches!(one.try_send(&vec![0; 1 << 24], &[]), Err(SocketError::TooLong)));
    }

    #[test]
    fn a_receiver_is_woken_by_a_message_sent_later() {
        let (one, other) = Connection::pair().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| other.receive_until(&mut [0; 8], None).unwrap().bytes);
            one.send_until(b"123", &[], None).unwrap();
            assert_eq!(waiting.join().unwrap(), 3);
        });
    }
}
