//! The socket that programs connect to.

use std::fs::{DirBuilder, Permissions, remove_file, set_permissions};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use sys::process::PidFd;
use sys::socket::{adopt_streams, peer_of, process_of};

/// A program that has connected.
#[derive(Debug)]
pub(super) struct Accepted {
    pub socket: UnixStream,
    /// It runs as this user.
    pub is_own_user: bool,
    /// Its process, if that can be seen.
    pub process: Option<(u32, PidFd)>,
}

/// A listening socket with a name.
#[derive(Debug)]
pub(super) struct Listener {
    socket: UnixListener,
    /// The name, which is removed with the socket; `None`: it is a service manager's.
    own_path: Option<PathBuf>,
}

impl Listener {
    /// Returns the socket for which a service manager started this program, if one did.
    ///
    /// # Errors
    /// It is not the one that is needed.
    pub fn adopt() -> anyhow::Result<Option<Self>> {
        Ok(adopt_streams()?.map(|socket| Self { socket, own_path: None }))
    }

    /// Listens at a path. The directory is created, for this user alone, if there is none; a socket
    /// on which no process listens is replaced.
    ///
    /// # Errors
    /// Another process listens there, or the kernel's errors.
    pub fn bind(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let created = DirBuilder::new().mode(0o700).recursive(true).create(directory);
            created.with_context(|| format!("cannot create {}", directory.display()))?;
        }
        match UnixStream::connect(path) {
            Ok(_) => {
                bail!("another sound server listens on {shown}: stop it, or use another --socket")
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                remove_file(path).with_context(|| format!("cannot replace {shown}"))?;
            }
            Err(_) => {}
        }
        let socket =
            UnixListener::bind(path).with_context(|| format!("cannot listen on {shown}"))?;
        let listener = Self { socket, own_path: Some(path.to_owned()) };
        set_permissions(path, Permissions::from_mode(0o600))?;
        listener.socket.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Accepts the next program, if one waits.
    pub fn accept(&self) -> Option<Accepted> {
        loop {
            match self.socket.accept() {
                Ok((socket, _)) => {
                    let peer = peer_of(&socket).ok();
                    let is_own_user =
                        peer.is_some_and(|peer| peer.user_id == sys::process::real_user_id());
                    let process = peer.and_then(|peer| peer.process_id);
                    let process = process.zip(process_of(&socket).ok());
                    socket.set_nonblocking(true).ok()?;
                    return Some(Accepted { socket, is_own_user, process });
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

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.own_path {
            // It may be gone already.
            let _ = remove_file(path);
        }
    }
}
