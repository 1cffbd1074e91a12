//! Which CPUs a thread runs on.

use std::cell::Cell;
use std::io;

use rustix::thread::{sched_getaffinity, sched_setaffinity};

use super::CpuSet;

/// Returns the CPUs that the calling thread may run on.
///
/// # Errors
/// `InvalidInput` on machines with more than [`CpuSet::MAX_CPUS`].
pub fn affinity() -> io::Result<CpuSet> {
    Ok(CpuSet::from_rustix(sched_getaffinity(None)?))
}

thread_local! {
    static USUAL: Cell<Option<CpuSet>> = const { Cell::new(None) };
}

/// Stores the CPUs of the calling thread for threads that [`create`](super::create) starts from it:
/// if it is pinned later, they are not.
///
/// # Errors
/// See [`affinity`].
pub fn note_usual_affinity() -> io::Result<CpuSet> {
    let usual = affinity()?;
    USUAL.set(Some(usual));
    Ok(usual)
}

/// Returns what was stored for the calling thread.
pub(super) fn usual_affinity() -> Option<CpuSet> {
    USUAL.get()
}

/// Restricts the calling thread to `cpus`; CPUs outside its cpuset are ignored.
///
/// # Errors
/// `InvalidInput` if no usable CPU is among them.
pub fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    Ok(sched_setaffinity(None, cpus.as_rustix())?)
}

/// Returns the CPU that the calling thread ran on a moment ago.
#[must_use]
#[inline]
pub fn current_cpu() -> usize {
    // Uses the C library, like `clock::now_ns`.
    // SAFETY: no argument, no precondition.
    let cpu = unsafe { libc::sched_getcpu() };
    // If the kernel does not tell, all threads run on one CPU.
    usize::try_from(cpu).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_pinned_to_one_cpu_runs_there() {
        let body = || {
            let allowed = affinity().unwrap();
            for cpu in allowed.iter() {
                let pin = CpuSet::from_iter([cpu]);
                set_affinity(&pin).unwrap();
                assert_eq!(affinity().unwrap(), pin);
                assert_eq!(current_cpu(), cpu);
            }
            set_affinity(&allowed).unwrap();
        };
        std::thread::spawn(body).join().unwrap();
    }

    #[test]
    fn no_cpu_at_all_is_refused() {
        assert_eq!(set_affinity(&CpuSet::new()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
