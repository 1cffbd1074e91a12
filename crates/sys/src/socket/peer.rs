//! The process at the other end, as the kernel recorded it when the connection was made.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::Connection;
use crate::process::PidFd;

/// Ids at the time of `connect` (or `socketpair`), in this process's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The process; `None` if it is in a pid namespace that is not visible here.
    pub process_id: Option<u32>,
    /// Its effective user.
    pub user_id: u32,
    /// Its effective group.
    pub group_id: u32,
}

impl Connection {
    /// Returns the ids of the connecting process (`SO_PEERCRED`).
    ///
    /// # Errors
    /// The errors of `getsockopt`.
    pub fn peer(&self) -> io::Result<PeerCredentials> {
        peer_of(self)
    }

    /// Returns the supplementary groups of the connecting process (`SO_PEERGROUPS`).
    ///
    /// # Errors
    /// The errors of `getsockopt`.
    pub fn peer_groups(&self) -> io::Result<Vec<u32>> {
        self.peer_groups_with_room_for(FEW_GROUPS)
    }

    fn peer_groups_with_room_for(&self, count: usize) -> io::Result<Vec<u32>> {
        let mut groups = vec![0_u32; count];
        let mut bytes = (groups.len() * size_of::<u32>()) as libc::socklen_t;
        let socket = self.as_fd().as_raw_fd();
        // SAFETY: the kernel writes at most `bytes` bytes to the vector, and both live through the
        // call.
        let answer = unsafe {
            let groups = groups.as_mut_ptr().cast();
            libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERGROUPS, groups, &raw mut bytes)
        };
        if answer != 0 {
            let error = io::Error::last_os_error();
            // The kernel has said how many there are, which cannot change.
            let needed = (bytes as usize / size_of::<u32>()).min(MOST_GROUPS);
            if error.raw_os_error() == Some(libc::ERANGE) && needed > count {
                return self.peer_groups_with_room_for(needed);
            }
            return Err(error);
        }
        groups.truncate(bytes as usize / size_of::<u32>());
        Ok(groups)
    }

    /// Returns a handle to the connecting process.
    ///
    /// Exact from Linux 6.5 on (`SO_PEERPIDFD`). Before, it is opened by id: if the process has
    /// ended and its id was reused, the handle is to another one.
    ///
    /// # Errors
    /// `ESRCH` or `EINVAL` if it has ended, `NotFound` if it is not visible from here.
    pub fn peer_pidfd(&self) -> io::Result<PidFd> {
        process_of(self)
    }
}

/// Returns a handle to the process that connected a local socket of any type, as exact as
/// [`Connection::peer_pidfd`].
///
/// # Errors
/// `ESRCH` or `EINVAL` if it has ended, `NotFound` if it is not visible from here.
pub fn process_of(socket: impl AsFd) -> io::Result<PidFd> {
    match option::<libc::c_int>(socket.as_fd(), libc::SO_PEERPIDFD) {
        // SAFETY: the kernel has just created this descriptor for us, and nothing else owns it.
        Ok(pidfd) => Ok(unsafe { OwnedFd::from_raw_fd(pidfd) }.into()),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            PidFd::open(peer_of(socket)?.process_id.ok_or(io::ErrorKind::NotFound)?)
        }
        Err(error) => Err(error),
    }
}

/// Returns the ids of the process that connected a local socket of any type (`SO_PEERCRED`).
///
/// # Errors
/// The errors of `getsockopt`.
pub fn peer_of(socket: impl AsFd) -> io::Result<PeerCredentials> {
    // Not through rustix, whose credentials cannot hold the process id 0 of an invisible process.
    let found: libc::ucred = option(socket.as_fd(), libc::SO_PEERCRED)?;
    Ok(PeerCredentials {
        process_id: u32::try_from(found.pid).ok().filter(|&process_id| process_id != 0),
        user_id: found.uid,
        group_id: found.gid,
    })
}

/// Returns the security label of the process that connected a local socket of any type
/// (`SO_PEERSEC`), which SELinux, AppArmor or Smack gave it; `None` if no such module labels
/// sockets.
///
/// # Errors
/// The errors of `getsockopt`: `ERANGE` for a label that is longer than any of these modules makes.
pub fn security_label_of(socket: impl AsFd) -> io::Result<Option<Vec<u8>>> {
    let mut label = vec![0_u8; LONGEST_LABEL];
    let mut bytes = label.len() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `bytes` bytes to the vector, and both live through the
    // call.
    let answer = unsafe {
        let label = label.as_mut_ptr().cast();
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERSEC, label, &raw mut bytes)
    };
    if answer != 0 {
        let error = io::Error::last_os_error();
        let has_none = error.raw_os_error() == Some(libc::ENOPROTOOPT);
        return if has_none { Ok(None) } else { Err(error) };
    }
    label.truncate(bytes as usize);
    Ok(Some(label))
}

/// Reads a `SOL_SOCKET` option into a plain C value, for which any bytes are valid.
fn option<T: PlainOption>(socket: BorrowedFd<'_>, name: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `value`, and both live through the call.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            value.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed, then partly or wholly overwritten; `PlainOption` types are valid for any
    // bytes.
    Ok(unsafe { value.assume_init() })
}

/// More than most users have.
const FEW_GROUPS: usize = 32;
/// `NGROUPS_MAX`.
const MOST_GROUPS: usize = 65_536;
/// Bytes. SELinux's contexts and AppArmor's stacks of profiles have some hundreds.
const LONGEST_LABEL: usize = 4096;

/// C values that are valid for any bytes.
trait PlainOption {}
impl PlainOption for libc::ucred {}
impl PlainOption for libc::c_int {}

#[cfg(test)]
mod tests {
    use not_run::not_run;

    use super::*;
    use crate::process::{process_id, real_user_id};

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (one, _other) = Connection::pair().unwrap();
        let peer = one.peer().unwrap();
        assert_eq!(peer.process_id, Some(process_id()));
        assert_eq!(peer.user_id, real_user_id());
        assert_eq!(peer.group_id, rustix::process::getegid().as_raw());
    }

    #[test]
    fn the_groups_of_the_peer_are_those_of_this_process() {
        let (one, _other) = Connection::pair().unwrap();
        let own: Vec<u32> = rustix::process::getgroups()
            .unwrap()
            .into_iter()
            .map(rustix::process::Gid::as_raw)
            .collect();
        assert_eq!(one.peer_groups().unwrap(), own);
    }

    #[test]
    fn the_label_of_the_peer_is_that_of_this_process() {
        let (one, _other) = Connection::pair().unwrap();
        let own = std::fs::read("/proc/self/attr/current").ok();
        let trimmed = |label: Vec<u8>| {
            String::from_utf8(label).unwrap().trim_end_matches(['\n', '\0']).to_owned()
        };
        // AppArmor may label only sockets that were connected by path.
        if let Some(label) = security_label_of(&one).unwrap() {
            assert_eq!(Some(trimmed(label)), own.map(trimmed));
        }
    }

    #[test]
    fn more_groups_than_there_is_room_for_are_asked_for_again() {
        let given: Vec<rustix::process::Gid> =
            (5000..5100).map(rustix::process::Gid::from_raw).collect();
        // Of this thread alone.
        if rustix::thread::set_thread_groups(&given).is_err() {
            return not_run("only root may have other groups");
        }
        let (one, _other) = Connection::pair().unwrap();
        assert_eq!(one.peer_groups().unwrap(), (5000..5100).collect::<Vec<u32>>());
    }

    #[test]
    fn the_peer_s_pidfd_refers_to_its_process() {
        let (one, _other) = Connection::pair().unwrap();
        let pidfd = one.peer_pidfd().unwrap();
        assert!(!pidfd.has_ended().unwrap());
        assert_eq!(pidfd.process_id().unwrap(), Some(process_id()));
        let flags = rustix::io::fcntl_getfd(&pidfd).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_file_that_is_not_a_socket_has_no_peer() {
        let connection = Connection::from(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
        assert_eq!(connection.peer().unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }
}
