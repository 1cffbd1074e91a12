//! Warnings of the library, on standard error unless the program installs a hook.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

static HOOK: Mutex<fn(&str)> = Mutex::new(to_standard_error);

fn to_standard_error(message: &str) {
    // A program may have closed its standard error.
    let _ = writeln!(std::io::stderr(), "consort: {message}");
}

/// Passes all warnings of this library to `hook`, on the thread that issues them. Never called
/// within a cycle.
pub fn set_hook(hook: fn(&str)) {
    *HOOK.lock().unwrap_or_else(PoisonError::into_inner) = hook;
}

/// Issues a warning for the program's user. Must not be called within a cycle.
pub(crate) fn warn(message: &str) {
    let hook = *HOOK.lock().unwrap_or_else(PoisonError::into_inner);
    hook(message);
}
