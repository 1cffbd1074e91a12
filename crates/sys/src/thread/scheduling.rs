//! Real-time scheduling of threads, which rustix lacks (sched(7)).

use std::io;
use std::mem::MaybeUninit;

/// A thread's scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheduling {
    /// `SCHED_FIFO` at this priority, 1 (lowest) to 99.
    Fifo(u32),
    /// `SCHED_RR` at this priority, 1 (lowest) to 99.
    RoundRobin(u32),
    /// Any policy that is not real-time.
    Other,
}

/// Why a thread's scheduling was not changed or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulingError {
    /// Neither privileged nor within `RLIMIT_RTPRIO`.
    #[error(
        "no permission for real-time priority {priority}, the limit of this process is {limit} (ulimit -r): allow it \
         with a line '@audio - rtprio 95' in /etc/security/limits.d/audio.conf, and log in again as a member of the \
         group audio"
    )]
    NotPermitted {
        /// The thread, 0 = the calling one.
        thread_id: u32,
        /// The requested real-time priority, 0 = none.
        priority: u32,
        /// `RLIMIT_RTPRIO` of this process.
        limit: u32,
    },
    /// The process has the permission, and the kernel refuses all the same.
    #[error(
        "the kernel refuses real-time priority {priority} although this process has the right to it: either real-time is \
         shared out among control groups (CONFIG_RT_GROUP_SCHED) and this process's group has none (cpu.rt_runtime_us), or \
         a sandbox forbids it"
    )]
    NoShare {
        /// The requested real-time priority.
        priority: u32,
    },
    /// The thread has ended.
    #[error("there is no thread {thread_id}")]
    NoSuchThread {
        /// The thread's id.
        thread_id: u32,
    },
    /// Not from 1 to 99.
    #[error("{priority} is not a real-time priority (1 to 99)")]
    BadPriority {
        /// The requested priority.
        priority: u32,
    },
    /// Anything else.
    #[error("cannot schedule thread {thread_id}: {source}")]
    Other {
        /// The thread, 0 = the calling one.
        thread_id: u32,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Makes a thread (0 = the calling one) `SCHED_FIFO`. Processes and threads that it creates later
/// start as `SCHED_OTHER` (`SCHED_RESET_ON_FORK`).
///
/// # Errors
/// [`SchedulingError`]; the scheduling is unchanged then.
pub fn set_fifo(thread_id: u32, priority: u32) -> Result<(), SchedulingError> {
    if !(1..=99).contains(&priority) {
        return Err(SchedulingError::BadPriority { priority });
    }
    set_policy(thread_id, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

/// Gives a thread a real-time scheduling, unless that is [`Scheduling::Other`]. Processes and
/// threads that it creates later start as `SCHED_OTHER`.
///
/// # Errors
/// [`SchedulingError`]; the scheduling is unchanged then.
pub(super) fn set_real_time(thread_id: u32, scheduling: Scheduling) -> Result<(), SchedulingError> {
    match scheduling {
        Scheduling::Fifo(priority) => set_fifo(thread_id, priority),
        Scheduling::RoundRobin(priority) => {
            set_policy(thread_id, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, priority)
        }
        Scheduling::Other => Ok(()),
    }
}

/// Makes a thread (0 = the calling one) `SCHED_OTHER`.
///
/// # Errors
/// [`SchedulingError`]; the scheduling is unchanged then.
pub fn set_other(thread_id: u32) -> Result<(), SchedulingError> {
    // Once set, only privileged processes may clear the flag: without it here, the demotion would
    // fail.
    let reset_on_fork = policy(thread_id)? & libc::SCHED_RESET_ON_FORK;
    set_policy(thread_id, libc::SCHED_OTHER | reset_on_fork, 0)
}

/// Returns the scheduling of a thread (0 = the calling one).
///
/// # Errors
/// [`SchedulingError::NoSuchThread`].
pub fn scheduling(thread_id: u32) -> Result<Scheduling, SchedulingError> {
    let policy = policy(thread_id)?;
    let mut parameter = MaybeUninit::<libc::sched_param>::zeroed();
    // SAFETY: the kernel writes one sched_param, which lives through the call.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_getparam, thread_id, parameter.as_mut_ptr()) };
    if answer < 0 {
        return Err(error(thread_id, 0));
    }
    // SAFETY: zeroed, then filled by the kernel; an integer in C.
    let priority = unsafe { parameter.assume_init() }.sched_priority as u32;
    Ok(match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => Scheduling::Fifo(priority),
        libc::SCHED_RR => Scheduling::RoundRobin(priority),
        _ => Scheduling::Other,
    })
}

// Raw calls instead of libc's: musl's are stubs that return ENOSYS, since the system calls apply to
// threads and POSIX requires processes.

fn set_policy(thread_id: u32, policy: libc::c_int, priority: u32) -> Result<(), SchedulingError> {
    // SAFETY: a C struct of integers, for which zero is valid.
    let mut parameter = unsafe { MaybeUninit::<libc::sched_param>::zeroed().assume_init() };
    parameter.sched_priority = priority as libc::c_int;
    // SAFETY: the kernel reads one sched_param, which lives through the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, thread_id, policy, &raw const parameter)
    };
    if answer < 0 { Err(error(thread_id, priority)) } else { Ok(()) }
}

fn policy(thread_id: u32) -> Result<libc::c_int, SchedulingError> {
    // SAFETY: no pointers.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread_id) };
    if policy < 0 { Err(error(thread_id, 0)) } else { Ok(policy as libc::c_int) }
}

fn error(thread_id: u32, priority: u32) -> SchedulingError {
    let source = io::Error::last_os_error();
    match source.raw_os_error() {
        Some(libc::ESRCH) => SchedulingError::NoSuchThread { thread_id },
        Some(libc::EPERM) => {
            let limit = crate::process::rtprio_limit();
            // A thread of another user's process may be refused for its owner.
            let has_right = thread_id == 0 && (limit >= priority || crate::process::may_schedule());
            if has_right && priority > 0 {
                SchedulingError::NoShare { priority }
            } else {
                SchedulingError::NotPermitted { thread_id, priority, limit }
            }
        }
        _ => SchedulingError::Other { thread_id, source },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use not_run::not_run;

    use super::*;
    use crate::thread::thread_id;

    /// Returns whether the machine that runs the tests permits real-time priorities, and reports
    /// the calling test as not run if it does not.
    fn real_time_is_permitted() -> bool {
        let permitted = std::thread::spawn(|| set_fifo(0, 1).is_ok()).join().unwrap();
        if !permitted {
            not_run("no right to real-time priorities here");
        }
        permitted
    }

    #[test]
    fn a_fifo_thread_keeps_it_from_the_threads_that_it_makes() {
        if !real_time_is_permitted() {
            return;
        }
        let body = || {
            set_fifo(0, 3).unwrap();
            assert_eq!(scheduling(0).unwrap(), Scheduling::Fifo(3));
            assert_eq!(scheduling(thread_id()).unwrap(), Scheduling::Fifo(3));
            std::thread::spawn(|| scheduling(0).unwrap()).join().unwrap()
        };
        assert_eq!(std::thread::spawn(body).join().unwrap(), Scheduling::Other);
    }

    #[test]
    fn a_thread_can_be_demoted_and_promoted_by_another() {
        if !real_time_is_permitted() {
            return;
        }
        let (say_id, hear_id) = mpsc::channel();
        let (say_end, hear_end) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            say_id.send(thread_id()).unwrap();
            let _ = hear_end.recv();
        });
        let id = hear_id.recv().unwrap();
        for _ in 0..2 {
            set_fifo(id, 2).unwrap();
            assert_eq!(scheduling(id).unwrap(), Scheduling::Fifo(2));
            set_other(id).unwrap();
            assert_eq!(scheduling(id).unwrap(), Scheduling::Other);
        }
        drop(say_end);
        thread.join().unwrap();
    }

    #[test]
    fn priorities_that_do_not_exist_are_refused() {
        for wrong in [0, 100, u32::MAX] {
            let refused = set_fifo(0, wrong);
            assert!(
                matches!(refused, Err(SchedulingError::BadPriority { priority }) if priority == wrong)
            );
        }
        assert_eq!(scheduling(0).unwrap(), Scheduling::Other);
    }

    #[test]
    fn a_missing_thread_is_distinguished_from_a_missing_right() {
        // Beyond the highest id that the kernel gives (PID_MAX_LIMIT, 2^22).
        let missing = 1 << 30;
        assert!(matches!(set_other(missing), Err(SchedulingError::NoSuchThread { .. })));
        assert!(matches!(scheduling(missing), Err(SchedulingError::NoSuchThread { .. })));
    }
}
