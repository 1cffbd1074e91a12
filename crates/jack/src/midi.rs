//! Events in MIDI buffers. Not in this release yet: a buffer never holds an event, and none can be written.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// `jack_midi_event_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// Frames from the cycle's start.
    pub time: u32,
    /// Bytes.
    pub size: usize,
    /// The message, valid in this cycle.
    pub buffer: *mut u8,
}

/// 0: there are no events yet. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_get_event_count(_buffer: *mut c_void) -> u32 {
    0
}

/// Fails with `-EINVAL` (null instead of a buffer) or `-ENOBUFS` (no such event). Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_event_get(event: *mut Event, buffer: *mut c_void, _index: u32) -> c_int {
    if event.is_null() || buffer.is_null() { -libc::EINVAL } else { -libc::ENOBUFS }
}

/// Does nothing: there are no events yet. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_clear_buffer(_buffer: *mut c_void) {}

/// As [`jack_midi_clear_buffer`]. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_reset_buffer(_buffer: *mut c_void) {}

/// 0: no event fits yet. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_max_event_size(_buffer: *mut c_void) -> usize {
    0
}

/// Null: no event fits yet. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_event_reserve(_buffer: *mut c_void, _time: u32, _size: usize) -> *mut u8 {
    null_mut()
}

/// Fails with `-EINVAL` (null instead of a buffer) or `-ENOBUFS` (no event fits yet). Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_event_write(
    buffer: *mut c_void,
    _time: u32,
    _data: *const u8,
    _size: usize,
) -> c_int {
    if buffer.is_null() { -libc::EINVAL } else { -libc::ENOBUFS }
}

/// 0. Thread: cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_midi_get_lost_event_count(_buffer: *mut c_void) -> u32 {
    0
}
