//! Runs a function of a shared library of this project in a dedicated process.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::Path;

use crate::library::loader_words;
use crate::process::exit_immediately;

/// What such a function gets: an open socket that becomes its own, and as many strings as counted.
/// It returns the process's exit status.
pub type EntryPoint = unsafe extern "C" fn(c_int, c_int, *const *const c_char) -> c_int;

/// Loads `library` and `companion` and calls the function `entry` of the first, which has the type
/// [`EntryPoint`], with `socket` and `arguments`. The process exits with its result; this function
/// returns, with the loader's message and the socket, only if a library cannot be loaded.
///
/// Every object that is loaded later resolves its symbols in `library` first, even if it was linked
/// with `companion`, which is loaded so that the loader does not search for it elsewhere.
pub fn run(
    library: &Path,
    companion: &Path,
    entry: &CStr,
    socket: OwnedFd,
    arguments: &[CString],
) -> (String, OwnedFd) {
    let entry = match load(library, companion, entry) {
        Ok(entry) => entry,
        Err(reason) => return (reason, socket),
    };
    let pointers: Vec<*const c_char> = arguments.iter().map(|text| text.as_ptr()).collect();
    let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
    // SAFETY: the descriptor is open and given away here, and `pointers` holds `count` terminated
    // strings that live through the call.
    exit_immediately(unsafe { entry(socket.into_raw_fd(), count, pointers.as_ptr()) })
}

fn load(library: &Path, companion: &Path, entry: &CStr) -> Result<EntryPoint, String> {
    let open = |path: &Path, flags| {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default();
        // SAFETY: a terminated string. The library's initialisers run: it is this project's own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        if handle.is_null() { Err(loader_words()) } else { Ok(handle) }
    };
    let handle = open(library, libc::RTLD_NOW | libc::RTLD_GLOBAL)?;
    open(companion, libc::RTLD_NOW | libc::RTLD_LOCAL)?;
    // SAFETY: an open handle and a terminated string.
    let found = unsafe { libc::dlsym(handle, entry.as_ptr()) };
    if found.is_null() {
        return Err(loader_words());
    }
    // SAFETY: the caller names a function of this project's own library that has this type.
    Ok(unsafe { std::mem::transmute::<*mut c_void, EntryPoint>(found) })
}
