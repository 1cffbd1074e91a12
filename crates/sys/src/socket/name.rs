//! The name of a listening socket, which a service manager may have as well: it listens there until
//! the first program comes. A server that is started by hand in between borrows the name.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// A socket in the file system: device and inode.
pub(super) type Inode = (u64, u64);

/// Where the socket is meanwhile whose name was borrowed.
fn aside(path: &Path) -> PathBuf {
    path.with_file_name("waiting")
}

/// Returns which socket has the name `path`.
pub(super) fn inode(path: &Path) -> Option<Inode> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Makes `path` free for a new socket: one that a process has open is put aside, one that was left
/// by a dead server is removed. Returns whether it was of a dead server.
///
/// # Errors
/// `AlreadyExists` if there is something other than a socket.
pub(super) fn take(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => {
            if is_dead(path) {
                std::fs::remove_file(path).map(|()| true)
            } else {
                std::fs::rename(path, aside(path)).map(|()| false)
            }
        }
        // MUTATION: bind.replaces_files
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives the name back to the socket that was put aside, also by a server that has died since, if
/// it is that of `own` or of nobody who lives. Without such a one, no socket has the name. A file
/// that is already gone is no error.
pub(super) fn give_back(path: &Path, own: Option<Inode>) {
    // The manager may have made itself another socket, which has the name then.
    let is_own = own.is_some() && inode(path) == own;
    if !is_own && !is_dead(path) {
        return;
    }
    let waiting = aside(path);
    if !is_dead(&waiting) && std::fs::rename(&waiting, path).is_ok() {
        return;
    }
    let _ = std::fs::remove_file(waiting);
    let _ = std::fs::remove_file(path);
}

/// Returns whether no process has the socket open that is at `path`. A process that has does not
/// notice: a socket of another type cannot connect to it, and the kernel looks first whether it is
/// open.
#[must_use]
pub fn is_dead(path: &Path) -> bool {
    let found = SocketAddrUnix::new(path).and_then(|address| {
        let other = SocketType::DGRAM;
        let socket = socket_with(AddressFamily::UNIX, other, SocketFlags::CLOEXEC, None)?;
        connect(socket, &address)
    });
    matches!(found, Err(Errno::CONNREFUSED | Errno::NOENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Connection, Listener, SocketError};

    fn socket(name: &str) -> PathBuf {
        let folder = format!("consort-name-{name}-{}", std::process::id());
        std::env::temp_dir().join(folder).join("control")
    }

    fn is_waiting(listener: &Listener) -> bool {
        matches!(listener.try_accept(), Err(SocketError::NotReady))
    }

    #[test]
    fn a_borrowed_name_is_given_back_to_who_listened_there() {
        let path = socket("borrowed");
        let manager = Listener::bind(&path).unwrap();
        let server = Listener::bind(&path).unwrap();
        assert!(!server.has_replaced_another(), "nobody has died");
        Connection::connect(&path, None).unwrap();
        server.try_accept().unwrap();
        assert!(is_waiting(&manager), "it noticed nothing");
        drop(server);
        assert!(is_waiting(&manager));
        Connection::connect(&path, None).unwrap();
        manager.try_accept().unwrap();
        drop(manager);
        assert!(!path.exists());
        std::fs::remove_dir(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_name_that_was_borrowed_by_a_dead_server_is_given_back_by_the_next_one() {
        let path = socket("dead");
        let manager = Listener::bind(&path).unwrap();
        let dead = Listener::bind(&path).unwrap();
        dead.die();
        let server = Listener::bind(&path).unwrap();
        assert!(server.has_replaced_another());
        drop(server);
        Connection::connect(&path, None).unwrap();
        manager.try_accept().unwrap();
        drop(manager);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_name_that_a_manager_has_taken_meanwhile_stays_its_own() {
        let path = socket("taken");
        let server = Listener::bind(&path).unwrap();
        // As systemd does.
        std::fs::remove_file(&path).unwrap();
        let manager = Listener::bind(&path).unwrap();
        drop(server);
        Connection::connect(&path, None).unwrap();
        manager.try_accept().unwrap();
        drop(manager);
        std::fs::remove_dir(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_name_whose_owner_has_ended_meanwhile_is_free() {
        let path = socket("ended");
        let manager = Listener::bind(&path).unwrap();
        let server = Listener::bind(&path).unwrap();
        manager.die();
        drop(server);
        assert!(std::fs::read_dir(path.parent().unwrap()).unwrap().next().is_none());
        std::fs::remove_dir(path.parent().unwrap()).unwrap();
    }
}
