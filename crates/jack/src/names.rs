//! Names and uuids of clients.

use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};

use client::ClientInfo;

use crate::clients::{self, ClientHandle, OpenClient};
use crate::convert::{allocated, text};
use crate::uuid;

/// Returns the size of the longest client name in bytes, including the terminating 0. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_name_size() -> c_int {
    65
}

/// Returns the client's name, valid until it is closed; null if it is not open. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_client_name(client: ClientHandle) -> *const c_char {
    client.pin().map_or(null(), |client| client.name.as_ptr())
}

fn by_name(client: &OpenClient, name: &str) -> Option<ClientInfo> {
    client.session.registry().clients().find(|info| info.name == name)
}

/// Returns the uuid, as text, of the client with this name; null if there is none. Freed with
/// `jack_free`.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_uuid_for_client_name(
    client: ClientHandle,
    name: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    let Some((client, name)) = client.pin().zip(unsafe { text(name) }) else { return null_mut() };
    by_name(&client, name).map_or(null_mut(), |info| allocated(&info.uuid.to_string()))
}

/// Returns the name of the client with this uuid; null if there is none. Freed with `jack_free`.
///
/// # Safety
/// `uuid` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_client_name_by_uuid(
    client: ClientHandle,
    uuid: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller's promise.
    let Some((client, uuid)) = client.pin().zip(unsafe { text(uuid) }) else { return null_mut() };
    let wanted = uuid::parse(uuid.as_bytes());
    let found = client.session.registry().clients().find(|info| Some(info.uuid) == wanted);
    found.map_or(null_mut(), |info| allocated(&info.name))
}

/// Returns the client's own uuid as text; null if it is not open. Freed with `jack_free`.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_get_uuid(client: ClientHandle) -> *mut c_char {
    client.pin().map_or(null_mut(), |client| allocated(&client.session.uuid().to_string()))
}

/// Returns the process id of the client with this name, on the server of any client of this
/// process; 0 if unknown.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_client_pid(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let Some((client, name)) = clients::any().zip(unsafe { text(name) }) else { return 0 };
    by_name(&client, name).and_then(|info| c_int::try_from(info.process).ok()).unwrap_or(0)
}
