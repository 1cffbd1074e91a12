//! What libasound has to say: it writes to standard error itself, which can block the thread that
//! called it.
//!
//! The library asks for a variadic function, or for an ordinary one for each thread. Rust defines
//! only the latter.

use std::ffi::{CStr, c_char, c_int};

use alsa_sys as ffi;

/// Longest message, in bytes; the rest of a longer one is left out.
const LONGEST: usize = 512;

unsafe extern "C" {
    /// Of the C library: formats a message into a buffer.
    fn vsnprintf(
        buffer: *mut c_char,
        room: usize,
        format: *const c_char,
        arguments: *mut ffi::__va_list_tag,
    ) -> c_int;
}

/// Has what the library says in the calling thread passed on by [`sys::report!`].
pub(crate) fn report() {
    // MUTATION: messages.written_by_library
    set(Some(pass_on));
}

/// Has nothing written of what the library says in the calling thread, which must not wait: one
/// that runs cycles.
pub fn discard_library_messages() {
    set(Some(discard));
}

fn set(handler: ffi::snd_local_error_handler_t) {
    // SAFETY: both handlers are functions of this program, which stay where they are.
    unsafe { ffi::snd_lib_error_set_local(handler) };
}

/// Thread: any that has called [`report`].
unsafe extern "C" fn pass_on(
    file: *const c_char,
    line: c_int,
    function: *const c_char,
    error: c_int,
    format: *const c_char,
    arguments: *mut ffi::__va_list_tag,
) {
    let mut buffer = [0; LONGEST];
    // SAFETY: the library passes the format and the arguments that it has been called with, and the
    // buffer has the room that is stated.
    let length = unsafe { vsnprintf(buffer.as_mut_ptr().cast(), LONGEST, format, arguments) };
    let message = CStr::from_bytes_until_nul(&buffer).unwrap_or_default().to_string_lossy();
    if length < 0 {
        return;
    }
    // SAFETY: the library passes names that its compiler has made.
    let (file, function) = unsafe { (text(file), text(function)) };
    let reason = match error {
        0 => String::new(),
        errno => format!(": {}", std::io::Error::from_raw_os_error(errno.saturating_abs())),
    };
    sys::report!("ALSA lib {file}:{line}:({function}) {message}{reason}");
}

/// Thread: cycle.
unsafe extern "C" fn discard(
    _file: *const c_char,
    _line: c_int,
    _function: *const c_char,
    _error: c_int,
    _format: *const c_char,
    _arguments: *mut ffi::__va_list_tag,
) {
}

/// Returns the text at `start`.
///
/// # Safety
/// `start` is null, or a zero-terminated text that stays as it is.
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}
