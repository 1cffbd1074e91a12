//! The session interface. Servers of this release have no sessions: there is never an event, and requests fail.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::clients::ClientHandle;
use crate::convert::{FAILED, order};

/// `jack_session_event_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// What is asked for.
    pub event_type: u32,
    /// From `malloc`.
    pub session_dir: *mut c_char,
    /// From `malloc`.
    pub client_uuid: *mut c_char,
    /// From `malloc`, by the program.
    pub command_line: *mut c_char,
    /// The program's answer.
    pub flags: u32,
    /// 0.
    pub future: u32,
}

/// `jack_session_command_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Command {
    /// From `malloc`; null ends a list.
    pub uuid: *mut c_char,
    /// From `malloc`.
    pub client_name: *mut c_char,
    /// From `malloc`.
    pub command: *mut c_char,
    /// The client's answer.
    pub flags: u32,
}

/// `JackSessionCallback`.
pub type SessionCallback = unsafe extern "C" fn(*mut Event, *mut c_void);

/// Accepts a callback that has no occasion yet: there are no sessions.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_session_callback(
    client: ClientHandle,
    _callback: Option<SessionCallback>,
    _argument: *mut c_void,
) -> c_int {
    order(client, |client| client.session.configure(|_| {}))
}

/// Fails: there is no event to answer yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_session_reply(_client: ClientHandle, _event: *mut Event) -> c_int {
    FAILED
}

/// Releases an event with the texts in it.
///
/// # Safety
/// `event` is null or an event from `malloc` whose texts are from `malloc` or null; all are used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_session_event_free(event: *mut Event) {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(content) = event.as_ref() else { return };
        for text in [content.session_dir, content.client_uuid, content.command_line] {
            libc::free(text.cast());
        }
        libc::free(event.cast());
    }
}

/// Null: there are no sessions yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_session_notify(
    _client: ClientHandle,
    _target: *const c_char,
    _type: u32,
    _path: *const c_char,
) -> *mut Command {
    null_mut()
}

/// Releases a list of answers.
///
/// # Safety
/// `commands` is null or an array from `malloc` that ends with a null uuid; its texts are from `malloc` or null. All are
/// used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_session_commands_free(commands: *mut Command) {
    if commands.is_null() {
        return;
    }
    // SAFETY: the caller's promise: each element up to the last may be read, and its texts released.
    unsafe {
        let mut command = commands;
        while !(*command).uuid.is_null() {
            for text in [(*command).uuid, (*command).client_name, (*command).command] {
                libc::free(text.cast());
            }
            command = command.add(1);
        }
        libc::free(commands.cast());
    }
}

/// Fails: there are no sessions yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_reserve_client_name(
    _client: ClientHandle,
    _name: *const c_char,
    _uuid: *const c_char,
) -> c_int {
    FAILED
}

/// Fails: there are no sessions yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_has_session_callback(_client: ClientHandle, _name: *const c_char) -> c_int {
    FAILED
}
