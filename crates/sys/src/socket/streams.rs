//! Sockets of streams of bytes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, listen,
    recvmsg, sendmsg, socket_with, sockopt,
};

use super::connection::{CONTROL_BYTES, RECEIVED_CONTROL_BYTES};
use super::process_of;
use crate::process::PidFd;

/// How long a peer of a TCP connection may be silent before the kernel asks whether it is there.
const SILENCE: Duration = Duration::from_secs(30);
/// Interval at which it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How often it is asked in vain before the connection is ended.
const QUESTIONS: u32 = 3;
/// How long a peer may leave bytes unacknowledged, or have no room for more, ms. The kernel looks
/// at each of its attempts, the pauses between which grow to twice as long.
const UNACKNOWLEDGED_MS: u32 = 60_000;

/// Returns whether a process listens on the socket of streams at `path`. Does not wait for it.
///
/// # Errors
/// Those of `connect`, such as `PermissionDenied`; not that there is nothing.
pub fn listens_at(path: &Path) -> io::Result<bool> {
    match try_connect(path)?.1 {
        // No room: as many connections as it can queue wait for it.
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the process that listens on the socket of streams at `path`: the one that called
/// `listen` last. `None` if nobody does, or as many connections as it can queue wait for it. Does
/// not wait.
///
/// # Errors
/// Those of `connect`, such as `PermissionDenied`; those of
/// [`process_of`](super::process_of), perhaps, if that process has ended.
pub fn process_listening_at(path: &Path) -> io::Result<Option<PidFd>> {
    match try_connect(path)? {
        (socket, Ok(())) => process_of(socket).map(Some),
        (_, Err(Errno::AGAIN | Errno::CONNREFUSED | Errno::NOENT)) => Ok(None),
        (_, Err(errno)) => Err(errno.into()),
    }
}

fn try_connect(path: &Path) -> io::Result<(OwnedFd, Result<(), Errno>)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let connected = connect(&socket, &SocketAddrUnix::new(path)?);
    Ok((socket, connected))
}

/// Makes this process the one that programs see behind a listening socket that another process has
/// given to it ([`process_listening_at`]). Connections that wait are kept.
///
/// # Errors
/// Those of `listen`: it is no listening socket.
pub fn take_over_listening(socket: impl AsFd) -> io::Result<()> {
    // As many may wait as the kernel allows.
    Ok(listen(socket, i32::MAX)?)
}

/// Prepares an accepted connection for packets that must not wait for each other, and for a peer
/// that vanishes: the kernel ends the connection after a minute or two, also if the peer never
/// reads. Neither reads nor writes block.
///
/// # Errors
/// The errors of `setsockopt`: the connection has ended.
pub fn prepare_accepted(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, ASK_AGAIN)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    Ok(sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS)?)
}

/// Has the kernel say with all that is written who wrote it (`SO_PASSCRED`, unix(7)), also before
/// the peer has asked for that: PulseAudio does so only once it has accepted the connection.
///
/// # Errors
/// The errors of `setsockopt`.
pub fn state_writer(stream: &UnixStream) -> io::Result<()> {
    Ok(sockopt::set_socket_passcred(stream, true)?)
}

/// Receives bytes that have come, at most as many as fit, and adds the descriptors that came with
/// them: those of the last write of which there are bytes. None of them is closed. 0 bytes: the
/// other end has closed. Does not wait.
///
/// # Errors
/// Those of `recvmsg`; `WouldBlock` if nothing has come.
pub fn receive_bytes(
    socket: impl AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); RECEIVED_CONTROL_BYTES];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut parts = [IoSliceMut::new(buffer)];
    let message = retry_on_intr(|| recvmsg(&socket, &mut parts, &mut control, flags))?;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    Ok(message.bytes)
}

/// Sends bytes with descriptors, which are duplicated, to a socket of this machine; returns how
/// many bytes had room. Does not wait.
///
/// # Errors
/// Those of `sendmsg`: `WouldBlock` if none had. `InvalidInput` above
/// [`MAX_DESCRIPTORS`](super::MAX_DESCRIPTORS).
pub fn send_bytes(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    Ok(retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags))?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;

    use super::*;

    struct Name(PathBuf);

    impl Name {
        fn new(name: &str) -> Self {
            let name = format!("consort-streams-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Name {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_socket_listens_until_its_process_closes_it() {
        let name = Name::new("listens");
        assert!(!listens_at(&name.0).unwrap(), "there is no file");
        let listener = UnixListener::bind(&name.0).unwrap();
        assert!(listens_at(&name.0).unwrap());
        drop(listener);
        assert!(!listens_at(&name.0).unwrap(), "its file is left");
    }

    #[test]
    fn a_listener_that_accepts_nothing_is_not_waited_for() {
        let name = Name::new("full");
        let listener = UnixListener::bind(&name.0).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _queued = UnixStream::connect(&name.0).unwrap();
        assert!(listens_at(&name.0).unwrap());
    }

    #[test]
    fn the_process_that_listens_is_the_last_that_took_the_socket_over() {
        let name = Name::new("whose");
        assert!(process_listening_at(&name.0).unwrap().is_none(), "there is no file");
        let listener = UnixListener::bind(&name.0).unwrap();
        let own = |found: Option<PidFd>| {
            found.map(|found| found.process_id().unwrap() == Some(std::process::id()))
        };
        assert_eq!(own(process_listening_at(&name.0).unwrap()), Some(true));
        let mut waiting = UnixStream::connect(&name.0).unwrap();
        // Another process takes it over, and is seen; then this one again.
        let given = listener.as_fd().try_clone_to_owned().unwrap();
        let listens = "import socket; socket.socket(fileno=0).listen(); input()";
        let mut other = std::process::Command::new("python3")
            .args(["-c", listens])
            .stdin(given)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // It fails as it reads from a socket that is none to read from.
        other.wait().unwrap();
        // Kernels differ in what they say of a process that has ended.
        let ended = process_listening_at(&name.0);
        assert!(ended.is_err() || own(ended.unwrap()) == Some(false));
        take_over_listening(&listener).unwrap();
        assert_eq!(own(process_listening_at(&name.0).unwrap()), Some(true));
        // Behind the connection that looked who listens.
        listener.accept().unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        waiting.write_all(b"x").unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(&mut accepted, &mut byte).unwrap();
    }

    #[test]
    fn descriptors_come_with_the_bytes_that_they_were_sent_with() {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(b"before").unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(send_bytes(&one, b"with", &[null.as_fd()]).unwrap(), 4);
        one.write_all(b"after").unwrap();
        let (mut buffer, mut descriptors) = ([0; 64], Vec::new());
        let count = receive_bytes(&other, &mut buffer, &mut descriptors).unwrap();
        assert_eq!((&buffer[..count], descriptors.len()), (&b"beforewith"[..], 1));
        let count = receive_bytes(&other, &mut buffer, &mut descriptors).unwrap();
        assert_eq!((&buffer[..count], descriptors.len()), (&b"after"[..], 1));
        let nothing = receive_bytes(&other, &mut buffer, &mut descriptors).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        drop(one);
        assert_eq!(receive_bytes(&other, &mut buffer, &mut descriptors).unwrap(), 0);
        let gone = send_bytes(&other, b"x", &[null.as_fd()]).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn packets_over_tcp_do_not_wait_for_each_other_nor_for_a_peer_that_has_vanished() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        prepare_accepted(&accepted).unwrap();
        assert!(accepted.nodelay().unwrap());
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        let asked = sockopt::tcp_keepintvl(&accepted).unwrap()
            * sockopt::tcp_keepcnt(&accepted).unwrap()
            + sockopt::tcp_keepidle(&accepted).unwrap();
        assert_eq!(asked, Duration::from_mins(1));
        assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), 60_000);
        let read = io::Read::read(&mut &accepted, &mut [0]).unwrap_err();
        assert_eq!(read.kind(), io::ErrorKind::WouldBlock);
    }
}
