//! Conversion between C's and Rust's values.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;

use client::{Error, PortType};

use crate::clients::{ClientHandle, OpenClient};
use crate::messages;

/// `JACK_DEFAULT_AUDIO_TYPE`
pub const AUDIO_TYPE: &CStr = c"32 bit float mono audio";
/// `JACK_DEFAULT_MIDI_TYPE`
pub const MIDI_TYPE: &CStr = c"8 bit raw midi";
/// Size of a MIDI buffer in bytes, independent of the quantum.
pub const MIDI_BUFFER_BYTES: usize = 32 * 1024;

/// The result of a failed call, where no other number is documented.
pub const FAILED: c_int = -1;

/// Returns a text from the program; `None` if it is null or not UTF-8, which names must be.
///
/// # Safety
/// `text` is null or a C string that stays unchanged for `'a`.
pub unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, so the caller has promised a C string.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Returns a copy of `text` that the program frees with `jack_free`; null if there is no memory.
pub fn allocated(text: &str) -> *mut c_char {
    let length = text.len();
    // SAFETY: any size may be asked for.
    let copy = unsafe { libc::malloc(length + 1) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: `copy` has room for the text and the terminating 0, and is fresh, so they do not
        // overlap.
        unsafe {
            copy.copy_from_nonoverlapping(text.as_ptr(), length);
            copy.add(length).write(0);
        }
    }
    copy.cast()
}

/// Returns an array from `malloc` with these elements; null for none, and if there is no memory.
pub fn array<T>(elements: Vec<T>) -> *mut T {
    if elements.is_empty() {
        return null_mut();
    }
    // SAFETY: any size may be asked for; the vector shows that this one is no overflow.
    let array = unsafe { libc::malloc(elements.len() * size_of::<T>()) }.cast::<T>();
    if !array.is_null() {
        for (index, element) in elements.into_iter().enumerate() {
            // SAFETY: there is room for all elements, and malloc aligns for every C type.
            unsafe { array.add(index).write(element) };
        }
    }
    array
}

/// Stores `value` at `place`, unless that is null.
///
/// # Safety
/// `place` is null or may be written.
pub unsafe fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, so the caller has promised that it may be written. The program's
        // structs may be packed.
        unsafe { place.write_unaligned(value) };
    }
}

/// Returns the port type with this name.
///
/// # Safety
/// `name` is null or a C string.
pub unsafe fn port_type(name: *const c_char) -> Option<PortType> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, so the caller has promised a C string.
    let name = unsafe { CStr::from_ptr(name) };
    match name {
        _ if name == AUDIO_TYPE => Some(PortType::Audio),
        _ if name == MIDI_TYPE => Some(PortType::Midi),
        _ => None,
    }
}

/// Returns the name of a port type.
pub fn type_name(port_type: PortType) -> &'static CStr {
    match port_type {
        PortType::Audio => AUDIO_TYPE,
        PortType::Midi => MIDI_TYPE,
    }
}

/// Returns 0, or -1 with a message.
pub fn answer(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

/// Returns -1 with a message. For calls that may wait.
pub fn refuse(why: &str) -> c_int {
    messages::error(format_args!("{why}"));
    FAILED
}

/// A message for [`refuse`].
pub const NO_SUCH_PORT: &str =
    "the port handle does not belong to an open client's server, or a text is missing";

/// Reports an error to the program. Not within a cycle, where nothing may be formatted or printed.
pub fn complain(error: &Error) {
    if !matches!(error, Error::InCycle) {
        messages::error(format_args!("{error}"));
    }
}

/// Calls `call` with an open client and returns 0, or -1 with a message. For calls that may wait.
pub fn request(client: ClientHandle, call: impl FnOnce(&OpenClient) -> Result<(), Error>) -> c_int {
    answer(client.pin().ok_or(Error::Closed).and_then(|client| call(&client)))
}
