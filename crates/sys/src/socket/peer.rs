//! The process at the other end, as the kernel recorded it when the connection was made.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

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
        // Not through rustix, whose credentials cannot hold the process id 0 of an invisible
        // process.
        let found: libc::ucred = self.option(libc::SO_PEERCRED)?;
        Ok(PeerCredentials {
            process_id: u32::try_from(found.pid).ok().filter(|&process_id| process_id != 0),
            user_id: found.uid,
            group_id: found.gid,
        })
    }

    /// Returns the supplementary groups of the connecting process (`SO_PEERGROUPS`).
    ///
    /// # Errors
    /// The errors of `getsockopt`.
    pub fn peer_groups(&self) -> io::Result<Vec<u32>> {
        // The kernel's maximum, so always enough.
        let mut groups = vec![0_u32; MOST_GROUPS];
        let mut bytes = (groups.len() * size_of::<u32>()) as libc::socklen_t;
        let socket = self.as_fd().as_raw_fd();
        // SAFETY: the kernel writes at most `bytes` bytes to the vector, and both live through the
        // call.
        let answer = unsafe {
            let groups = groups.as_mut_ptr().cast();
            libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERGROUPS, groups, &raw mut bytes)
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
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
        match self.option::<libc::c_int>(libc::SO_PEERPIDFD) {
            // SAFETY: the kernel has just created this descriptor for us, and nothing else owns it.
            Ok(pidfd) => Ok(unsafe { OwnedFd::from_raw_fd(pidfd) }.into()),
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                PidFd::open(self.peer()?.process_id.ok_or(io::ErrorKind::NotFound)?)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads a `SOL_SOCKET` option into a plain C value, for which any bytes are valid.
    fn option<T: PlainOption>(&self, name: libc::c_int) -> io::Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        let mut size = size_of::<T>() as libc::socklen_t;
        let socket = self.as_fd().as_raw_fd();
        // SAFETY: the kernel writes at most `size` bytes to `value`, and both live through the
        // call.
        let answer = unsafe {
            libc::getsockopt(
                socket,
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
}

/// `NGROUPS_MAX`.
const MOST_GROUPS: usize = 65_536;

/// C values that are valid for any bytes.
trait PlainOption {}
impl PlainOption for libc::ucred {}
impl PlainOption for libc::c_int {}

#[cfg(test)]
mod tests {
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
    fn the_peer_s_pidfd_refers_to_its_process() {
        let (one, _other) = Connection::pair().unwrap();
        let pidfd = one.peer_pidfd().unwrap();
        assert!(!pidfd.has_ended().unwrap());
        let info = format!("/proc/self/fdinfo/{}", pidfd.as_fd().as_raw_fd());
        let info = std::fs::read_to_string(info).unwrap();
        let process = info.lines().find_map(|line| line.strip_prefix("Pid:")).unwrap();
        assert_eq!(process.trim(), process_id().to_string());
        let flags = rustix::io::fcntl_getfd(&pidfd).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_file_that_is_not_a_socket_has_no_peer() {
        let connection = Connection::from(OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
        assert_eq!(connection.peer().unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }
}
