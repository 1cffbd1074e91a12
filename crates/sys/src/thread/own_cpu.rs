//! The CPU of a thread, read in each cycle.

use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use super::current_cpu;

/// The word in which the kernel stores the CPU of the thread that created this value, if the C
/// library has registered one (rseq). The library's `sched_getcpu` reads it too, but lies on a page
/// that a cycle would need for nothing else. Without such a word, [`current_cpu`].
///
/// Source: rseq(2), and `__rseq_offset` of glibc 2.35 and later.
#[derive(Debug)]
pub struct OwnCpu {
    /// Null if there is none. A pointer, so that the value stays on its thread.
    word: *const AtomicI32,
}

impl OwnCpu {
    /// Finds the calling thread's word. Not for cycles.
    #[must_use]
    pub fn of_this_thread() -> Self {
        Self { word: area::cpu_id().unwrap_or(ptr::null()) }
    }

    /// Returns the CPU that the thread ran on a moment ago. Thread: cycle.
    #[must_use]
    #[inline]
    pub fn get(&self) -> usize {
        if self.word.is_null() {
            return current_cpu();
        }
        // SAFETY: `of_this_thread` has seen that the area is there and reaches so far, aligned as
        // the ABI has it. It is part of the calling thread's own block, which lives as long as the
        // thread, and this value cannot leave that. Only the kernel writes there, before the thread
        // comes back to its own code.
        let cpu = unsafe { &*self.word }.load(Ordering::Relaxed);
        // Negative: the kernel no longer writes there.
        usize::try_from(cpu).unwrap_or_else(|_| current_cpu())
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod area {
    use std::arch::asm;
    use std::ffi::CStr;
    use std::sync::atomic::AtomicI32;

    /// Offset of `cpu_id` in `struct rseq`, and its end.
    const OFFSET: usize = 4;
    const END: u32 = 8;

    /// Returns the address in the calling thread's area, if it has one.
    pub(super) fn cpu_id() -> Option<*const AtomicI32> {
        let offset = exported::<isize>(c"__rseq_offset")?;
        let is_there = exported::<u32>(c"__rseq_size").is_some_and(|bytes| bytes >= END);
        is_there
            .then(|| thread_pointer().wrapping_byte_offset(offset).wrapping_byte_add(OFFSET).cast())
    }

    /// Returns a number that the C library exports, if it does.
    fn exported<T: Copy>(name: &CStr) -> Option<T> {
        // SAFETY: `name` is zero-terminated; RTLD_DEFAULT searches the libraries that are loaded
        // already.
        let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // SAFETY: a constant of that type under this name in every C library that has it.
        (!place.is_null()).then(|| unsafe { *place.cast::<T>() })
    }

    /// Returns the address from which `__rseq_offset` counts.
    fn thread_pointer() -> *const u8 {
        let pointer;
        // SAFETY: by the psABI, every thread's control block begins with its own address.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        // SAFETY: reads a register that every program may read.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
        }
        pointer
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod area {
    /// The thread's block cannot be found on this architecture.
    pub(super) fn cpu_id() -> Option<*const std::sync::atomic::AtomicI32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{CpuSet, affinity, set_affinity};

    fn follows_its_thread(ask: impl FnOnce() -> OwnCpu + Send + 'static) {
        let body = || {
            let own = ask();
            for cpu in affinity().unwrap().iter() {
                set_affinity(&CpuSet::from_iter([cpu])).unwrap();
                assert_eq!(own.get(), cpu);
            }
        };
        std::thread::spawn(body).join().unwrap();
    }

    #[test]
    fn own_cpu_follows_the_thread_from_cpu_to_cpu() {
        follows_its_thread(OwnCpu::of_this_thread);
        follows_its_thread(|| OwnCpu { word: ptr::null() });
    }

    #[test]
    fn a_word_that_the_kernel_does_not_keep_is_not_believed() {
        static LEFT: AtomicI32 = AtomicI32::new(-2);
        follows_its_thread(|| OwnCpu { word: &raw const LEFT });
    }
}
