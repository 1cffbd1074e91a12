//! The socket that programs of this machine connect to.

use std::fs::{DirBuilder, Permissions, remove_file, set_permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use sys::process::PidFd;
use sys::socket::{
    adopt_streams, listens_at, peer_of, process_listening_at, process_of, take_over_listening,
};

use super::accounts::Peer;
use super::socket::Socket;
use crate::front_end::Way;

/// A program that has connected.
#[derive(Debug)]
pub(super) struct Accepted {
    pub socket: Socket,
    pub way: Way,
    pub peer: Peer,
}

/// A listening socket with a name, for programs of this machine.
#[derive(Debug)]
pub struct Listener {
    // Before its file, which looks whether anybody else listens.
    socket: UnixListener,
    /// `None`: the file is a service manager's.
    _file: Option<SocketFile>,
}

/// The file of a listening socket. It is removed with this value if no other process listens there.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl SocketFile {
    fn at(path: PathBuf) -> io::Result<Self> {
        let id = Self::id(&path)?;
        Ok(Self { path, id })
    }

    fn id(path: &Path) -> io::Result<(u64, u64)> {
        path.symlink_metadata().map(|found| (found.dev(), found.ino()))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = Self::id(&self.path).is_ok_and(|id| id == self.id);
        if is_own && !listens_at(&self.path).unwrap_or(true) {
            // It may be gone already.
            let _ = remove_file(&self.path);
        }
    }
}

impl Listener {
    /// Returns the socket for which a service manager started this program, if one did.
    ///
    /// # Errors
    /// It is not the one that is needed.
    pub(crate) fn adopt() -> anyhow::Result<Option<Self>> {
        Ok(adopt_streams()?.map(|socket| Self { socket, _file: None }))
    }

    /// Takes the socket of the server that started this process, which may outlive the server.
    ///
    /// # Errors
    /// It is no listening socket with a name.
    pub(crate) fn of_server(socket: OwnedFd) -> io::Result<Self> {
        let socket = UnixListener::from(socket);
        take_over_listening(&socket)?;
        let address = socket.local_addr()?;
        let path = address.as_pathname().ok_or(ErrorKind::InvalidInput)?;
        Ok(Self { _file: Some(SocketFile::at(path.to_owned())?), socket })
    }

    /// Listens at a path, or where PulseAudio's programs look for their server. The directory is
    /// created, for this user alone, if there is none; a socket on which no process listens is
    /// replaced.
    ///
    /// # Errors
    /// Another process listens there, something else has the name, there is no directory for the
    /// default one, or the kernel's errors.
    pub fn bind(path: Option<&Path>) -> anyhow::Result<Self> {
        let path = path.map_or_else(default_path, |path| Ok(path.to_owned()))?;
        let shown = path.display();
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let created = DirBuilder::new().mode(0o700).recursive(true).create(directory);
            created.with_context(|| format!("cannot create {}", directory.display()))?;
        }
        if listens_at(&path).unwrap_or(false) {
            bail!("another sound server listens on {shown}: stop it, or use another socket");
        }
        // Anything else that has the name is left alone, and refused by the kernel.
        if path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
            remove_file(&path).with_context(|| format!("cannot replace {shown}"))?;
        }
        let socket =
            UnixListener::bind(&path).with_context(|| format!("cannot listen on {shown}"))?;
        set_permissions(&path, Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, _file: Some(SocketFile::at(path)?) })
    }

    /// Returns its name, if it has one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        Some(self.socket.local_addr().ok()?.as_pathname()?.to_owned())
    }

    /// Returns the socket once more, for a process that is to accept programs.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.socket.as_fd().try_clone_to_owned()
    }

    /// Accepts the next program, if one waits.
    pub(super) fn accept(&self) -> Option<Accepted> {
        loop {
            match self.socket.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(true).ok()?;
                    let found = peer_of(&socket).ok();
                    let user = found.map(|found| found.user_id);
                    let is_own = user == Some(sys::process::real_user_id());
                    let way = if is_own { Way::OwnUser } else { Way::OtherUser };
                    let id = found.and_then(|found| found.process_id);
                    let process = id.zip(process_of(&socket).ok());
                    let peer =
                        process.map_or(Peer::Unseen, |(id, handle)| Peer::Process(id, handle));
                    return Some(Accepted { socket: Socket::Unix(socket), way, peer });
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the process that serves programs at a path, or where PulseAudio's programs look for
/// their server, if an earlier server of the name `server` has started it (`--of-server`).
#[must_use]
pub fn front_end_at(path: Option<&Path>, server: &str) -> Option<PidFd> {
    let path = path.map_or_else(default_path, |path| Ok(path.to_owned())).ok()?;
    let process = process_listening_at(&path).ok()??;
    let line = std::fs::read(format!("/proc/{}/cmdline", process.process_id().ok()??)).ok()?;
    let mut words = line.split(|byte| *byte == 0).skip(1);
    let is_its = words.by_ref().take(4).eq(arguments_of_front_end(server).map(str::as_bytes));
    is_its.then_some(process)
}

/// The words with which a server starts its front end.
pub fn arguments_of_front_end(server: &str) -> [&str; 4] {
    ["pulse", "--server", server, "--of-server"]
}

/// Returns where PulseAudio's programs look for their server.
pub(crate) fn default_path() -> anyhow::Result<PathBuf> {
    let directory = std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty());
    let directory = directory.context("XDG_RUNTIME_DIR is not set: name a socket")?;
    Ok(Path::new(&directory).join("pulse/native"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_is_taken_only_if_no_process_listens_on_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made/native");
        let listener = Listener::bind(Some(&path)).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let refused = Listener::bind(Some(&path)).unwrap_err().to_string();
        assert!(refused.contains("another sound server"), "{refused}");
        drop(listener);
        assert!(!path.exists());
        // As a process leaves it that was killed.
        drop(UnixListener::bind(&path).unwrap());
        let _listener = Listener::bind(Some(&path)).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_file_or_link_in_the_sockets_place_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("song.wav");
        std::fs::write(&file, "sound").unwrap();
        assert!(Listener::bind(Some(&file)).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"sound");
        let (link, missing) = (directory.path().join("link"), directory.path().join("missing"));
        std::os::unix::fs::symlink(&missing, &link).unwrap();
        assert!(Listener::bind(Some(&link)).is_err());
        assert!(link.is_symlink() && !missing.exists());
    }

    #[test]
    fn the_socket_listens_as_long_as_a_copy_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("native");
        let listener = Listener::bind(Some(&path)).unwrap();
        let accepting = Listener::of_server(listener.duplicate().unwrap()).unwrap();
        let _program = UnixStream::connect(&path).unwrap();
        assert!(accepting.accept().is_some_and(|accepted| accepted.way == Way::OwnUser));
        drop(accepting);
        assert!(path.exists(), "the server has it");
        assert!(UnixStream::connect(&path).is_ok());
        let accepting = Listener::of_server(listener.duplicate().unwrap()).unwrap();
        drop(listener);
        assert!(path.exists(), "the front end has it");
        drop(accepting);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_has_replaced_another_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("native");
        let listener = Listener::bind(Some(&path)).unwrap();
        remove_file(&path).unwrap();
        let later = UnixListener::bind(&path).unwrap();
        drop(later);
        drop(listener);
        assert!(path.exists(), "nobody listens, and it is another one's");
    }
}
