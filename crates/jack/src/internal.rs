//! Internal clients, which a server loads. Servers of this release load none.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use crate::client::status;
use crate::clients::ClientHandle;
use crate::convert::{FAILED, store};
use crate::options::{Argument, InvalidOption, LoadOptions};

/// Null: there are no internal clients yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_internal_client_name(_client: ClientHandle, _internal: u64) -> *mut c_char {
    null_mut()
}

/// 0, with `JackNoSuchClient`: there are no internal clients yet.
///
/// # Safety
/// `status` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_internal_client_handle(
    _client: ClientHandle,
    _name: *const c_char,
    status: *mut u32,
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { store(status, status::FAILURE | status::NO_SUCH_CLIENT) };
    0
}

/// 0, with `JackLoadFailure`, or `JackInvalidOption`: no internal client can be loaded yet. `first` and `second` are
/// looked at only if `options` announce them: see [`options`](crate::options).
///
/// # Safety
/// `status` is null or may be written; the announced arguments are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_internal_client_load(
    _client: ClientHandle,
    _name: *const c_char,
    options: u32,
    status: *mut u32,
    first: Argument,
    second: Argument,
) -> u64 {
    // SAFETY: the caller's promise.
    let reason = match unsafe { LoadOptions::read(options, [first, second]) } {
        Ok(_) => status::LOAD_FAILURE,
        Err(InvalidOption) => status::INVALID_OPTION,
    };
    // SAFETY: the caller's promise.
    unsafe { store(status, status::FAILURE | reason) };
    0
}

/// `JackNoSuchClient`: there are no internal clients yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_internal_client_unload(_client: ClientHandle, _internal: u64) -> u32 {
    status::FAILURE | status::NO_SUCH_CLIENT
}

/// Fails: no internal client can be loaded yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_internal_client_new(
    _name: *const c_char,
    _load_name: *const c_char,
    _load_init: *const c_char,
) -> c_int {
    FAILED
}

/// Does nothing: there are no internal clients yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_internal_client_close(_name: *const c_char) {}
