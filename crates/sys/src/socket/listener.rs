//! A listening socket.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

use super::{Connection, SocketError, name};

const BACKLOG: i32 = 128;

/// A listening socket with a name. On drop, the name is given back to the manager's socket that
/// waits for it, or else unlinked; unless it was [adopted](Self::adopt): then it is the manager's.
#[derive(Debug)]
pub struct Listener {
    pub(super) socket: OwnedFd,
    pub(super) path: PathBuf,
    /// The file at `path`; `None`: it is the manager's, and a [mark](super::adopted::mark) exists
    /// as long as this listens.
    pub(super) own: Option<name::Inode>,
    pub(super) has_replaced_another: bool,
}

impl Listener {
    /// Listens at `path`, with mode 0600 from the first moment on; a missing parent directory is
    /// created with mode 0700. An existing socket is replaced: the caller holds the
    /// [lock](crate::lock::LockFile) of the name, so it was left by a dead server, or a service
    /// manager waits there, which has the name again once this is dropped.
    ///
    /// # Errors
    /// `AlreadyExists` if something other than a socket exists there, `InvalidInput`
    /// (`ENAMETOOLONG`) above 107 bytes, and those of `mkdir` and `bind`.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            DirBuilder::new().mode(0o700).recursive(true).create(parent)?;
        }
        Self::bind_with(path, Mode::RUSR | Mode::WUSR)
    }

    /// Same as [`bind`](Self::bind), in an existing directory, for the members of a group as well:
    /// mode 0660.
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind); `PermissionDenied` if this user may not give it to the group.
    pub fn bind_for_group(path: &Path, group_id: u32) -> io::Result<Self> {
        let listener = Self::bind_with(path, Mode::RUSR | Mode::WUSR)?;
        std::os::unix::fs::chown(path, None, Some(group_id))?;
        // After the change of the group, so that no other group ever has access; independent of the
        // umask.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
        Ok(listener)
    }

    fn bind_with(path: &Path, mode: Mode) -> io::Result<Self> {
        // That of a server that a manager had started, and that has died.
        let was_adopted = std::fs::remove_file(super::adopted::mark(path)).is_ok();
        let has_replaced_another = name::take(path)? | was_adopted;
        let listening = listen_at(path, mode);
        let socket = listening.inspect_err(|_| name::give_back(path, None))?;
        let own = name::inode(path);
        Ok(Self { socket, path: path.to_owned(), own, has_replaced_another })
    }

    /// Accepts the next connection if there is one.
    ///
    /// # Errors
    /// [`SocketError::NotReady`] if there is none, and those of `accept4`, such as no descriptor
    /// left: the connection then stays queued.
    pub fn try_accept(&self) -> Result<Connection, SocketError> {
        loop {
            match accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(socket) => return Ok(Connection::from_socket(socket)),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Closes the socket and leaves its name, as a process does that is killed.
    #[cfg(test)]
    pub(super) fn die(mut self) {
        // The socket is closed by it.
        self.socket = std::fs::File::open("/dev/null").unwrap().into();
        std::mem::forget(self);
    }

    /// Returns whether the previous listener did not end cleanly: its file still existed.
    #[must_use]
    pub fn has_replaced_another(&self) -> bool {
        self.has_replaced_another
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.own.is_some() {
            name::give_back(&self.path, self.own);
        } else {
            let _ = std::fs::remove_file(super::adopted::mark(&self.path));
        }
    }
}

fn listen_at(path: &Path, mode: Mode) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // On Linux the name gets its mode from the socket; a chmod after the bind would be too late.
    fchmod(&socket, mode)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(
                std::env::temp_dir()
                    .join(format!("consort-listener-{name}-{}", std::process::id())),
            )
        }

        fn socket(&self) -> PathBuf {
            self.0.join("server").join("socket")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    fn soon() -> Option<u64> {
        Some(clock::now_ns() + 3_000_000)
    }

    #[test]
    fn a_connection_carries_messages_both_ways() {
        let folder = Folder::new("both-ways");
        let listener = Listener::bind(&folder.socket()).unwrap();
        assert!(matches!(listener.try_accept(), Err(SocketError::NotReady)));
        let client = Connection::connect(listener.path(), None).unwrap();
        let server = listener.try_accept().unwrap();
        let mut buffer = [0; 8];
        client.try_send(b"ask", &[]).unwrap();
        assert_eq!(server.receive_until(&mut buffer, None).unwrap().bytes, 3);
        server.try_send(b"answer", &[]).unwrap();
        assert_eq!(client.receive_until(&mut buffer, None).unwrap().bytes, 6);
        assert_eq!(server.peer().unwrap().process_id, Some(std::process::id()));
    }

    #[test]
    fn only_the_owner_can_reach_the_socket_and_its_directory() {
        let folder = Folder::new("mode");
        let listener = Listener::bind(&folder.socket()).unwrap();
        assert_eq!(mode(listener.path()), 0o600);
        assert_eq!(mode(&folder.0.join("server")), 0o700);
    }

    #[test]
    fn the_name_goes_with_the_listener() {
        let folder = Folder::new("unlink");
        drop(Listener::bind(&folder.socket()).unwrap());
        assert!(!folder.socket().exists());
        let refused = io::Error::from(Connection::connect(&folder.socket(), None).unwrap_err());
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_socket_left_by_a_dead_server_is_replaced() {
        let folder = Folder::new("stale");
        Listener::bind(&folder.socket()).unwrap().die();
        let listener = Listener::bind(&folder.socket()).unwrap();
        let _client = Connection::connect(&folder.socket(), None).unwrap();
        listener.try_accept().unwrap();
    }

    #[test]
    fn a_file_or_link_in_the_socket_s_place_is_left_alone() {
        let folder = Folder::new("file");
        let path = folder.socket();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, b"mine").unwrap();
        assert_eq!(Listener::bind(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(Listener::bind(&link).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(link.is_symlink());
    }

    #[test]
    fn a_name_too_long_for_the_kernel_is_refused() {
        let folder = Folder::new("long");
        let error = Listener::bind(&folder.socket().with_extension("x".repeat(108))).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENAMETOOLONG));
    }

    #[test]
    fn a_server_that_does_not_accept_delays_only_until_the_deadline() {
        let folder = Folder::new("backlog");
        let listener = Listener::bind(&folder.socket()).unwrap();
        let mut queued = Vec::new();
        let refused = loop {
            match Connection::connect(listener.path(), soon()) {
                Ok(connection) => queued.push(connection),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, SocketError::NotReady));
        assert!(queued.len() > BACKLOG as usize);
        listener.try_accept().unwrap();
        Connection::connect(listener.path(), None).unwrap();
    }
}
