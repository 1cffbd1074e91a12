//! This process, its limits, and handles to others.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::event::PollFlags;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, pidfd_send_signal, prlimit,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

use crate::poll;
use crate::signals::Signal;

/// A handle to one process, which stays valid when the process id is reused.
///
/// Its descriptor becomes readable when the process has ended and its memory is torn down.
#[derive(Debug)]
pub struct PidFd {
    pidfd: OwnedFd,
}

impl PidFd {
    /// Opens the process that has the id `process_id` now.
    ///
    /// # Errors
    /// `ESRCH` if there is none, `InvalidInput` if the id is not a possible one.
    pub fn open(process_id: u32) -> io::Result<Self> {
        let pid = i32::try_from(process_id).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { pidfd: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Returns the id of the process in the pid namespace that /proc shows; `None` if it has none
    /// there, or has been reaped. Use it while this handle is held, and check with
    /// [`has_ended`](Self::has_ended) afterwards that it was still this process's.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn process_id(&self) -> io::Result<Option<u32>> {
        let info = format!("/proc/self/fdinfo/{}", self.pidfd.as_raw_fd());
        let info = std::fs::read_to_string(info)?;
        let id = info.lines().find_map(|line| line.strip_prefix("Pid:"));
        // 0: another namespace's, -1: reaped.
        Ok(id.and_then(|id| id.trim().parse().ok()).filter(|id| *id > 0))
    }

    /// Sends `signal`.
    ///
    /// # Errors
    /// `ESRCH` if the process has ended, `PermissionDenied` if it is another user's.
    pub fn kill(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.pidfd, signal.into_rustix())?)
    }

    /// Returns whether the process has ended.
    ///
    /// # Errors
    /// The errors of `poll`.
    pub fn has_ended(&self) -> io::Result<bool> {
        self.wait_until(Some(0))
    }

    /// Waits for the process to end; `false` once the deadline has passed. Does not reap a child.
    ///
    /// # Errors
    /// The errors of `poll`; not an interruption.
    pub fn wait_until(&self, deadline_ns: Option<u64>) -> io::Result<bool> {
        poll::wait_for(self.as_fd(), PollFlags::IN, deadline_ns)
    }
}

/// Wraps a pidfd from another source, such as `SO_PEERPIDFD`. Another kind of descriptor fails at
/// its first use.
impl From<OwnedFd> for PidFd {
    fn from(pidfd: OwnedFd) -> Self {
        Self { pidfd }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Makes the kernel send SIGTERM to the program that `command` starts when the starting thread
/// ends, for whatever reason. It must be started by a thread that lives as long as the program is
/// needed, such as the main thread.
pub fn end_with_this_thread(command: &mut Command) {
    let parent = process_id();
    // SAFETY: between fork and exec only two system calls are made, without memory of their own.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
            // The parent may have ended before the call above.
            match rustix::process::getppid() {
                Some(now) if now.as_raw_nonzero().get() as u32 == parent => Ok(()),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        });
    }
}

/// Kills every process of the group that `leader` leads.
///
/// # Errors
/// `ESRCH` if there is none.
pub fn kill_group(leader: u32) -> io::Result<()> {
    let pid =
        i32::try_from(leader).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process_group(pid, rustix::process::Signal::KILL)?)
}

/// Returns the real user id.
#[must_use]
pub fn real_user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Returns the id of this process, read at every call: a forked child sees its own.
#[must_use]
pub fn process_id() -> u32 {
    std::process::id()
}

/// Ends this process at once, without running destructors or exit handlers of anything that was
/// loaded into it, whatever its other threads do.
pub fn exit_immediately(status: i32) -> ! {
    // SAFETY: has no conditions.
    unsafe { libc::_exit(status) }
}

/// Drops, for the calling thread and the threads it creates, all of root's capabilities except
/// scheduling and locking memory, and permanently the privileges that executed programs could add.
/// With `looks_at_others`, other processes' files in /proc stay readable.
///
/// # Errors
/// The errors of `prctl(PR_SET_NO_NEW_PRIVS)` and `capset`.
pub fn drop_rights(looks_at_others: bool) -> io::Result<()> {
    set_no_new_privs(true)?;
    let has = capabilities(None)?;
    let mut kept = CapabilitySet::SYS_NICE | CapabilitySet::IPC_LOCK;
    kept.set(CapabilitySet::SYS_PTRACE, looks_at_others);
    let (effective, permitted) = (has.effective & kept, has.permitted & kept);
    let inheritable = CapabilitySet::empty();
    // MUTATION: drop_rights.keeps_capabilities
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?)
}

/// Raises the soft limit on open descriptors to the hard one; returns the new limit (`None` =
/// unlimited).
///
/// # Errors
/// The errors of `setrlimit`.
pub fn raise_file_limit() -> io::Result<Option<u64>> {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?;
    Ok(getrlimit(Resource::Nofile).current)
}

/// Returns how many descriptors this process may have open (`None` = unlimited).
#[must_use]
pub fn file_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Returns the highest SCHED_FIFO priority that an unprivileged thread of this process may take; 0
/// = none.
#[must_use]
pub fn rtprio_limit() -> u32 {
    const HIGHEST: u64 = 99;
    getrlimit(Resource::Rtprio).current.unwrap_or(HIGHEST).min(HIGHEST) as u32
}

/// Returns whether the calling thread may take any priority, whatever the limit (`CAP_SYS_NICE`).
#[must_use]
pub fn may_schedule() -> bool {
    capabilities(None).is_ok_and(|has| has.effective.contains(CapabilitySet::SYS_NICE))
}

/// Makes the kernel end `process` if one of its real-time threads runs for longer than `longest_us`
/// without sleeping.
///
/// # Errors
/// The errors of `prlimit`.
pub fn limit_realtime(process: u32, longest_us: u64) -> io::Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let limit = Rlimit { current: Some(longest_us), maximum: Some(longest_us) };
    prlimit(Some(pid), Resource::Rttime, limit)?;
    Ok(())
}

/// Returns how many bytes this process may lock into memory (`None` = unlimited).
#[must_use]
pub fn memlock_limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// Keeps every page, present and future, in memory once it has been touched.
///
/// # Errors
/// `PermissionDenied` if there is a limit ([`memlock_limit`]) and no permission to exceed it: later
/// mappings would fail at the limit.
pub fn lock_all_memory_on_fault() -> io::Result<()> {
    let exceeds =
        || capabilities(None).is_ok_and(|has| has.effective.contains(CapabilitySet::IPC_LOCK));
    if memlock_limit().is_some() && !exceeds() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::process::Command;

    use super::*;
    use crate::forked;

    #[test]
    fn a_pidfd_is_readable_once_its_process_was_killed() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pidfd = PidFd::open(child.id()).unwrap();
        assert!(!pidfd.has_ended().unwrap());
        assert_eq!(pidfd.process_id().unwrap(), Some(child.id()));
        pidfd.kill(Signal::Kill).unwrap();
        assert!(pidfd.wait_until(None).unwrap());
        assert!(!child.wait().unwrap().success());
        assert_eq!(pidfd.process_id().unwrap(), None);
        assert_eq!(pidfd.kill(Signal::Kill).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn ids_that_no_process_can_have_are_refused() {
        for process_id in [0, 1 << 31, u32::MAX] {
            assert_eq!(PidFd::open(process_id).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn the_raised_file_limit_is_the_hard_limit() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_file_limit().unwrap(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
    }

    #[test]
    fn dropped_rights_do_not_come_back() {
        let thread = std::thread::spawn(|| {
            drop_rights(false).unwrap();
            let left = capabilities(None).unwrap();
            (
                left,
                rustix::thread::no_new_privs().unwrap(),
                drop_rights(true).is_ok(),
                capabilities(None).unwrap(),
            )
        });
        let (left, no_new, _, again) = thread.join().unwrap();
        assert!(
            no_new && (CapabilitySet::SYS_NICE | CapabilitySet::IPC_LOCK).contains(left.permitted)
        );
        assert_eq!((left.effective, left.permitted), (again.effective, again.permitted));
    }

    /// Returns whether `VmLck` of this process is not zero. Does not allocate.
    fn has_locked_memory() -> bool {
        let mut status = [0; 4096];
        let read = File::open("/proc/self/status")
            .and_then(|mut file| file.read(&mut status))
            .unwrap_or(0);
        let text = std::str::from_utf8(&status[..read]).unwrap_or_default();
        text.lines().any(|line| {
            line.starts_with("VmLck:") && line.contains(|digit: char| matches!(digit, '1'..='9'))
        })
    }

    #[test]
    fn locking_all_memory_locks_it_or_says_that_it_is_not_permitted() {
        const LOCKED: i32 = 0;
        const REFUSED: i32 = 1;
        const NOT_LOCKED: i32 = 2;
        assert!(!has_locked_memory());
        let status = forked::exit_status(|| match lock_all_memory_on_fault() {
            Ok(()) if has_locked_memory() => LOCKED as u8,
            Ok(()) => NOT_LOCKED as u8,
            Err(_) => REFUSED as u8,
        });
        match memlock_limit() {
            None => assert_eq!(status, LOCKED),
            Some(_) => assert!(matches!(status, LOCKED | REFUSED), "{status}"),
        }
    }

    #[test]
    fn the_realtime_priority_limit_is_a_possible_priority() {
        assert!(rtprio_limit() <= 99);
    }
}
