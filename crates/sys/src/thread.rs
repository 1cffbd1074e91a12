//! The calling thread: its id, name, stack, CPU time, signals, floating-point mode and scheduling.

mod affinity;
mod counters;
mod cpu_set;
mod creator;
mod denormals;
mod own_cpu;
mod peer;
mod scheduling;
mod stack;
mod switches;

pub use affinity::{affinity, current_cpu, note_usual_affinity, set_affinity};
pub use counters::{CpuTime, ThreadCounters, ThreadFacts};
pub use cpu_set::{CpuSet, CpuSetParseError};
pub use creator::{
    CreatedThread, ThreadBody, ThreadCreator, create, set_creator, spawn_by_creator,
    spawn_by_creator_without_signals,
};
pub use denormals::flush_denormals_to_zero;
pub use own_cpu::OwnCpu;
pub use peer::{DemotedThread, PeerThread, PeerThreads};
pub use scheduling::{Scheduling, SchedulingError, scheduling, set_fifo, set_other};
pub use stack::{lock_stack, prefault_stack};
pub use switches::{Switch, SwitchTrace};

use std::ffi::CString;
use std::io;
use std::thread::{Builder, JoinHandle};

use crate::signals::SavedMask;

/// Returns the kernel's id of the calling thread, read at every call: a forked child sees its own.
#[must_use]
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// The nice value of threads for which others wait, and which have little to do.
pub const FAVOURED_NICE: i32 = -11;

/// Raises the calling thread above ordinary ones ([`FAVOURED_NICE`]); returns whether that is
/// permitted. Otherwise it stays an ordinary one.
pub fn favour() -> bool {
    let thread = rustix::process::Pid::from_raw(thread_id().cast_signed());
    rustix::process::setpriority_process(thread, FAVOURED_NICE).is_ok()
}

/// Names the calling thread, as `top -H` shows it: the first 15 bytes, cut between characters, up
/// to a NUL.
pub fn set_name(name: &str) {
    // Cannot fail: the name is terminated and short enough.
    let _ = rustix::thread::set_name(&kernel_name(name));
}

fn kernel_name(name: &str) -> CString {
    const LONGEST: usize = 15;
    let name = &name[..name.floor_char_boundary(LONGEST)];
    let name = name.split('\0').next().unwrap_or_default();
    CString::new(name).unwrap_or_default()
}

/// Starts a thread with this name (cut as in [`set_name`]) and stack size; it inherits everything
/// else.
///
/// # Errors
/// The errors of `pthread_create`: no memory, or too many threads.
pub fn spawn_named<T: Send + 'static>(
    name: &str,
    stack_bytes: usize,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let name = kernel_name(name).into_string().unwrap_or_default();
    Builder::new().name(name).stack_size(stack_bytes).spawn(body)
}

/// Same as [`spawn_named`], for a thread inside another project's program: it never runs one of the
/// program's signal handlers, not even at its start.
///
/// # Errors
/// See [`spawn_named`].
pub fn spawn_without_signals<T: Send + 'static>(
    name: &str,
    stack_bytes: usize,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _inherited_then_put_back = SavedMask::block_all()?;
    spawn_named(name, stack_bytes, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_what_the_kernel_keeps() {
        for (case, given, kept) in [
            ("short", "driver", "driver"),
            ("fifteen bytes", "123456789012345", "123456789012345"),
            ("longer", "1234567890123456", "123456789012345"),
            ("a character across the end", "12345678901234é", "12345678901234"),
            ("a NUL", "a\0b", "a"),
            ("empty", "", ""),
        ] {
            assert_eq!(kernel_name(given).to_str().unwrap(), kept, "{case}");
        }
    }

    #[test]
    fn a_spawned_thread_has_its_own_name() {
        let body = || (thread_id(), rustix::thread::name().unwrap());
        let (id, name) = spawn_named("consort-test-thread", 1 << 18, body).unwrap().join().unwrap();
        assert_ne!(id, thread_id());
        assert_eq!(name.to_str().unwrap(), "consort-test-th");
    }

    pub(super) fn blocks(number: libc::c_int) -> bool {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() >> (number - 1) & 1 == 1
    }

    #[test]
    fn a_thread_without_signals_blocks_them_only_for_itself() {
        let body = || [libc::SIGTERM, libc::SIGUSR1, libc::SIGSEGV].map(blocks);
        let found = spawn_without_signals("helper", 1 << 18, body).unwrap().join().unwrap();
        assert_eq!(found, [true, true, false]);
        assert!(!blocks(libc::SIGUSR1));
    }
}
