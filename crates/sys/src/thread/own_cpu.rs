//! On which CPU a thread runs, asked in each cycle.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::current_cpu;

/// The word in which the kernel keeps the CPU of the thread that made this value, where the C library has told it to: one
/// load, from a page that the thread's own variables lie on. Else [`current_cpu`].
///
/// Source: rseq(2), and `__rseq_offset` of glibc 2.35 and later.
#[derive(Debug)]
pub struct OwnCpu {
    /// Null where there is none. A pointer, so that the value stays on the thread.
    word: *const AtomicU32,
}

/// `cpu_id` in `struct rseq`.
const CPU_ID_OFFSET: usize = 4;

impl OwnCpu {
    /// Of the calling thread. Not for cycles.
    #[must_use]
    pub fn of_this_thread() -> Self {
        let word = match (number::<isize>(c"__rseq_offset"), number::<u32>(c"__rseq_size")) {
            (Some(offset), Some(1..)) => {
                thread_pointer().wrapping_byte_offset(offset).wrapping_byte_add(CPU_ID_OFFSET)
            }
            _ => ptr::null(),
        };
        Self { word: word.cast() }
    }

    /// The CPU that the thread ran on a moment ago. Thread: cycle.
    #[must_use]
    #[inline]
    pub fn get(&self) -> usize {
        if self.word.is_null() {
            return current_cpu();
        }
        // SAFETY: part of the calling thread's own block, which it has as long as it runs; the value cannot leave it. Only
        // the kernel writes there, while the thread does not run.
        unsafe { &*self.word }.load(Ordering::Relaxed) as usize
    }
}

/// A number that the C library exports, if it does.
fn number<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: `name` is zero-terminated; RTLD_DEFAULT searches the libraries that are loaded already.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: a constant of that type under this name in every C library that has it.
    (!place.is_null()).then(|| unsafe { *place.cast::<T>() })
}

/// What `__rseq_offset` counts from.
#[cfg(target_arch = "x86_64")]
fn thread_pointer() -> *const u8 {
    let pointer;
    // SAFETY: the psABI has every thread's control block begin with its own address.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
    pointer
}

/// What `__rseq_offset` counts from.
#[cfg(target_arch = "aarch64")]
fn thread_pointer() -> *const u8 {
    let pointer;
    // SAFETY: reads a register that a program may read.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem))
    };
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{CpuSet, affinity, set_affinity};

    #[test]
    fn it_follows_the_thread_from_cpu_to_cpu() {
        let body = || {
            let own = OwnCpu::of_this_thread();
            for cpu in affinity().unwrap().iter() {
                set_affinity(&CpuSet::from_iter([cpu])).unwrap();
                assert_eq!((own.get(), current_cpu()), (cpu, cpu));
            }
        };
        std::thread::spawn(body).join().unwrap();
    }
}
