//! A listening socket of a service manager, which starts the program at the first connection
//! (`sd_listen_fds(3)`).

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{SocketAddrUnix, SocketType, getsockname, sockopt};

use super::{Listener, name};

/// Returns the one socket of streams for which a service manager started this program, if one did.
/// Its name is the manager's, which continues to listen.
///
/// # Errors
/// `InvalidInput` if the manager passed anything else.
pub fn adopt_streams() -> io::Result<Option<UnixListener>> {
    let handed = take_handed_over()?;
    if handed.is_empty() {
        return Ok(None);
    }
    let socket = <[OwnedFd; 1]>::try_from(handed).ok().filter(|[socket]| {
        sockopt::socket_type(socket) == Ok(SocketType::STREAM)
            && sockopt::socket_acceptconn(socket) == Ok(true)
    });
    let Some([socket]) = socket else {
        let wanted = "the service manager's unit needs one 'ListenStream=' and no other socket";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, wanted));
    };
    ioctl_fionbio(&socket, true)?;
    Ok(Some(socket.into()))
}

/// Returns the sockets for which a service manager started this program; none if it did not, or if
/// they were taken before.
fn take_handed_over() -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let descriptors = sd_notify::listen_fds()?;
    // Relaxed: the flag orders no other memory.
    if descriptors.len() == 0 || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let owned = descriptors.map(|descriptor| {
        // SAFETY: the manager opened these for this process, which its LISTEN_PID names, and no
        // other code here looks for them; the flag above keeps this function from owning them
        // twice.
        unsafe { OwnedFd::from_raw_fd(descriptor) }
    });
    Ok(owned.collect())
}

impl Listener {
    /// Returns the socket at `path` for which a service manager started this program, if one did.
    /// Its name stays when the listener is dropped: the manager continues to listen, and starts the
    /// next server. The file `path` with `.adopted` exists until the server stops cleanly.
    ///
    /// # Errors
    /// `InvalidInput` if the manager passed anything but one `SOCK_SEQPACKET` socket that listens
    /// at `path`.
    pub fn adopt(path: &Path) -> io::Result<Option<Self>> {
        let handed = take_handed_over()?;
        if handed.is_empty() {
            return Ok(None);
        }
        let [socket] = <[OwnedFd; 1]>::try_from(handed)
            .map_err(|handed| refused(path, &format!("{} descriptors", handed.len())))?;
        if !listens_at(&socket, path)? {
            return Err(refused(path, "another socket"));
        }
        ioctl_fionbio(&socket, true)?;
        // A server that was started by hand in between may have died with the name.
        name::give_back(path, None);
        let marked = OpenOptions::new().write(true).create_new(true).mode(0o600).open(mark(path));
        let has_replaced_another = match marked {
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => true,
            Err(error) => return Err(error),
        };
        Ok(Some(Self { socket, path: path.to_owned(), own: None, has_replaced_another }))
    }
}

/// The file that exists while a server listens with a socket that a service manager has handed
/// over.
pub(super) fn mark(path: &Path) -> PathBuf {
    path.with_extension("adopted")
}

fn listens_at(socket: &OwnedFd, path: &Path) -> Result<bool, Errno> {
    let is_listening = sockopt::socket_type(socket)? == SocketType::SEQPACKET
        && sockopt::socket_acceptconn(socket)?;
    Ok(is_listening
        && SocketAddrUnix::try_from(getsockname(socket)?)? == SocketAddrUnix::new(path)?)
}

fn refused(path: &Path, what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "the service manager handed over {what}: its unit needs 'ListenSequentialPacket={}' alone",
            path.display()
        ),
    )
}
