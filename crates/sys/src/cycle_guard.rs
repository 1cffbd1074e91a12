//! Tells a checking library, if one is preloaded, when the calling thread is in its part of a
//! cycle.
//!
//! The tests preload a small library that ends the process when the heap, a lock or a stream is
//! used there, in the server and inside any program that uses `libjack.so.0`. Without it, entering
//! and leaving is one comparison each.

use std::sync::OnceLock;

/// The functions that a checking library exports.
#[derive(Debug, Clone, Copy)]
struct Checker {
    enter: extern "C" fn(),
    leave: extern "C" fn(),
}

static CHECKER: OnceLock<Option<Checker>> = OnceLock::new();

fn symbol(name: &std::ffi::CStr) -> Option<extern "C" fn()> {
    // SAFETY: `name` is zero-terminated; RTLD_DEFAULT searches the libraries that are loaded
    // already.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: only the checking library exports these names, as functions without parameters or
    // result.
    (!found.is_null())
        .then(|| unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(found) })
}

/// Searches for a checking library. Must run once in a process before its first cycle: the search
/// is too slow for a cycle.
pub fn look_for_checker() {
    CHECKER.get_or_init(|| {
        Some(Checker {
            enter: symbol(c"consort_cycle_enter")?,
            leave: symbol(c"consort_cycle_leave")?,
        })
    });
}

/// Marks the beginning of the calling thread's part of a cycle. Thread: cycle.
#[inline]
pub fn enter() {
    if let Some(Some(checker)) = CHECKER.get() {
        (checker.enter)();
    }
}

/// Marks the end of the calling thread's part, or the beginning of a program's code. Thread: cycle.
#[inline]
pub fn leave() {
    if let Some(Some(checker)) = CHECKER.get() {
        (checker.leave)();
    }
}
