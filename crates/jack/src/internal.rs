//! Internal clients: plug-ins that the server runs in separate processes. None of these functions
//! may be called in a cycle.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;

use client::{Error, InternalClient, InternalFailure, Observer, PlugIn, RequestError, Requester};

use crate::client::status;
use crate::clients::ClientHandle;
use crate::convert::{FAILED, allocated, complain, store, text};
use crate::options::{Argument, InvalidOption, LoadOptions};

/// Returns the status bits of a failed request.
fn status_of(error: &Error) -> u32 {
    let reason = match error {
        Error::Refused(RequestError::Internal { failure, .. }) => match failure {
            InternalFailure::Unknown => status::NO_SUCH_CLIENT,
            InternalFailure::Load => status::LOAD_FAILURE,
            InternalFailure::NameTaken => status::NAME_NOT_UNIQUE,
            InternalFailure::Start => status::INIT_FAILURE,
        },
        Error::Refused(_) => status::LOAD_FAILURE,
        _ => status::SERVER_ERROR,
    };
    status::FAILURE | reason
}

/// Returns the handle and the status bits, which are 0 for a client that was found or loaded.
/// Reports errors.
fn answered(result: Result<InternalClient, Error>) -> (u64, u32) {
    match result {
        Ok(internal) => (internal.handle, 0),
        Err(error) => {
            complain(&error);
            (0, status_of(&error))
        }
    }
}

/// Returns the name of an internal client, freed with `jack_free`; null if there is none with this
/// handle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_internal_client_name(
    client: ClientHandle,
    internal: u64,
) -> *mut c_char {
    let found =
        client.pin().ok_or(Error::Closed).and_then(|client| client.session.internal(internal));
    match found {
        Ok(internal) => allocated(&internal.name),
        Err(error) => {
            complain(&error);
            null_mut()
        }
    }
}

/// Returns the handle of the internal client with this name; 0, with `JackNoSuchClient`, if there
/// is none.
///
/// # Safety
/// `name` is null or a C string, `status` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_internal_client_handle(
    client: ClientHandle,
    name: *const c_char,
    status: *mut u32,
) -> u64 {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    let (handle, bits) = match (client.pin(), name) {
        (Some(client), Some(name)) => answered(client.session.find_internal(name)),
        _ => (0, status::FAILURE | status::NO_SUCH_CLIENT),
    };
    // SAFETY: the caller's promise.
    unsafe { store(status, bits) };
    handle
}

/// Loads an internal client and waits until its `jack_initialize` has returned. Returns its handle,
/// or 0 with the reason in `status`. `first` and `second` are read only if `options` announce them;
/// see [`options`](crate::options).
///
/// # Safety
/// `name` is null or a C string, `status` is null or may be written; the announced arguments are
/// null or C strings.
#[cfg_attr(not(target_arch = "x86"), unsafe(no_mangle))]
pub unsafe extern "C" fn jack_internal_client_load(
    client: ClientHandle,
    name: *const c_char,
    options: u32,
    status: *mut u32,
    first: Argument,
    second: Argument,
) -> u64 {
    // SAFETY: the caller's promise.
    let (name, options) = unsafe { (text(name), LoadOptions::read(options, [first, second])) };
    let (handle, bits) = match (client.pin(), name, options) {
        (_, _, Err(InvalidOption)) => (0, status::FAILURE | status::INVALID_OPTION),
        (Some(client), Some(name), Ok(options)) => load(&client.session, name, &options),
        _ => (0, status::FAILURE | status::LOAD_FAILURE),
    };
    // SAFETY: the caller's promise.
    unsafe { store(status, bits) };
    handle
}

fn load(session: &client::Session, name: &str, options: &LoadOptions<'_>) -> (u64, u32) {
    let as_text = |given: Option<&'_ CStr>| {
        given.map_or(Some(String::new()), |text| Some(text.to_str().ok()?.to_owned()))
    };
    let (Some(object), Some(parameters)) = (as_text(options.load_name), as_text(options.load_init))
    else {
        return (0, status::FAILURE | status::LOAD_FAILURE);
    };
    // Without an object name, the object has the client's name.
    let object = if object.is_empty() { name.to_owned() } else { object };
    let loaded = session.load_internal(PlugIn {
        name: name.to_owned(),
        exact: !options.may_change_name,
        object,
        parameters,
    });
    let renamed = loaded.as_ref().is_ok_and(|internal| internal.name != name);
    let (handle, bits) = answered(loaded);
    (handle, if renamed { status::NAME_NOT_UNIQUE } else { bits })
}

/// Unloads an internal client and waits until its process has ended. Returns 0, or `JackFailure`
/// and the reason.
#[unsafe(no_mangle)]
pub extern "C" fn jack_internal_client_unload(client: ClientHandle, internal: u64) -> u32 {
    let Some(client) = client.pin() else { return status::FAILURE | status::NO_SUCH_CLIENT };
    match client.session.unload_internal(internal) {
        Ok(()) => 0,
        Err(error) => {
            complain(&error);
            status_of(&error)
        }
    }
}

/// Loads an internal client into the default server. Returns 0, or -1.
///
/// # Safety
/// The texts are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_internal_client_new(
    name: *const c_char,
    load_name: *const c_char,
    load_init: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (name, object, parameters) = unsafe { (text(name), text(load_name), text(load_init)) };
    let (Some(name), Some(object)) = (name, object) else { return FAILED };
    let plug_in = PlugIn {
        name: name.to_owned(),
        exact: true,
        object: object.to_owned(),
        parameters: parameters.unwrap_or_default().to_owned(),
    };
    let loaded = Observer::open(None).and_then(|observer| observer.load_internal(plug_in));
    if answered(loaded).0 == 0 { FAILED } else { 0 }
}

/// Unloads the internal client with this name from the default server.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_internal_client_close(name: *const c_char) {
    // SAFETY: the caller's promise.
    let Some(name) = (unsafe { text(name) }) else { return };
    let unloaded = Observer::open(None).and_then(|observer| {
        let internal = observer.find_internal(name)?;
        observer.unload_internal(internal.handle)
    });
    if let Err(error) = unloaded {
        complain(&error);
    }
}
