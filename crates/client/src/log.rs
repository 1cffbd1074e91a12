//! Where warnings go: to standard error, unless the program says otherwise.

use std::sync::{Mutex, PoisonError};

static HOOK: Mutex<fn(&str)> = Mutex::new(to_standard_error);

fn to_standard_error(message: &str) {
    eprintln!("consort: {message}");
}

/// Gives all warnings of this library to `hook`, on whatever thread they arise. Never called within a cycle.
pub fn set_hook(hook: fn(&str)) {
    *HOOK.lock().unwrap_or_else(PoisonError::into_inner) = hook;
}

/// Tells the program what it should know. Never within a cycle.
pub(crate) fn warn(message: &str) {
    let hook = *HOOK.lock().unwrap_or_else(PoisonError::into_inner);
    hook(message);
}
