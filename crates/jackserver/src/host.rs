//! A plug-in's process: loads the plug-in, opens its client, and finishes it when the server asks.
//!
//! The plug-in is linked to this library, whichever of JACK's two libraries it was built with.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null;

use client::{HostSocket, InternalFailure};
use jack::client::{jack_client_close, jack_client_open, status};
use jack::clients::ClientHandle;
use jack::options::option;
use sys::library::loader_words;

/// `jack_initialize`: returns 0 if the plug-in wants to run.
type Initialize = unsafe extern "C" fn(ClientHandle, *const c_char) -> c_int;
/// `jack_finish`: takes the argument of the client's process callback.
type Finish = unsafe extern "C" fn(*mut c_void);

/// Strings that [`consort_host`] gets.
const ARGUMENTS: usize = 4;

/// A plug-in's two entry points. The plug-in stays loaded as long as the process.
struct EntryPoints {
    initialize: Initialize,
    finish: Finish,
}

/// Runs a plug-in as a client until the server, at the other end of `socket`, requests its end, and
/// returns the exit status of the process. This is the entry point that `consort host` calls
/// ([`sys::library_entry`]).
///
/// The arguments are the client's name, `1` if a name that is taken is an error and `0` if it may
/// be changed, the plug-in's file, and its parameters.
///
/// # Safety
/// `socket` is an open socket that becomes this function's own; `arguments` points to `count` C
/// strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_host(
    socket: c_int,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let Ok(line) = HostSocket::listen(socket.into()) else { return 1 };
    if count != ARGUMENTS as c_int {
        line.failed(
            InternalFailure::Load,
            "consort and libjackserver.so.0 are from different releases",
        );
        return 1;
    }
    // SAFETY: the caller's promise, and the count has been checked.
    let [name, exact, object, parameters] =
        unsafe { *arguments.cast::<[*const c_char; ARGUMENTS]>() };
    // SAFETY: the caller's promise.
    let (exact, object) = unsafe { (CStr::from_ptr(exact) == c"1", CStr::from_ptr(object)) };
    // SAFETY: the caller's promise.
    let started = unsafe { start(object, name, exact, parameters) };
    let (plug_in, client) = match started {
        Ok(started) => started,
        Err((failure, reason)) => {
            line.failed(failure, &reason);
            return 1;
        }
    };
    let given = client.pin().map(|client| client.session.name().to_owned()).unwrap_or_default();
    line.running(&given);
    line.wait();
    let argument =
        client.pin().map_or(std::ptr::null_mut(), |client| client.hooks.process_argument());
    // SAFETY: the plug-in's function, called once, as intclient.h promises; the library is never
    // unloaded.
    unsafe { (plug_in.finish)(argument) };
    jack_client_close(client);
    0
}

/// Loads the plug-in, opens its client and calls `jack_initialize`.
///
/// # Safety
/// The texts are C strings.
unsafe fn start(
    object: &CStr,
    name: *const c_char,
    exact: bool,
    parameters: *const c_char,
) -> Result<(EntryPoints, ClientHandle), (InternalFailure, String)> {
    let plug_in = load(object).map_err(|reason| (InternalFailure::Load, reason))?;
    let options = option::NO_START_SERVER | if exact { option::USE_EXACT_NAME } else { 0 };
    let mut bits = 0;
    // SAFETY: the caller's promise; no argument is announced.
    let client = unsafe { jack_client_open(name, options, &raw mut bits, null(), null()) };
    if client == ClientHandle::NONE {
        let taken = bits & status::NAME_NOT_UNIQUE != 0;
        let failure = if taken { InternalFailure::NameTaken } else { InternalFailure::Start };
        return Err((failure, format!("the plug-in's client cannot be opened (status {bits:#x})")));
    }
    // SAFETY: the plug-in's function, called once, as intclient.h promises.
    let answer = unsafe { (plug_in.initialize)(client, parameters) };
    if answer != 0 {
        jack_client_close(client);
        let reason = format!("jack_initialize of {} returned {answer}", object.to_string_lossy());
        return Err((InternalFailure::Start, reason));
    }
    Ok((plug_in, client))
}

fn load(object: &CStr) -> Result<EntryPoints, String> {
    // SAFETY: a terminated string. The plug-in's initialisers run, in a process dedicated to it.
    let handle = unsafe { libc::dlopen(object.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(format!("the plug-in cannot be loaded: {}", loader_words()));
    }
    let find = |name: &CStr| {
        // SAFETY: an open handle and a terminated string.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if found.is_null() {
            Err(format!("not a JACK plug-in: {}", loader_words()))
        } else {
            Ok(found)
        }
    };
    let (initialize, finish) = (find(c"jack_initialize")?, find(c"jack_finish")?);
    // SAFETY: a plug-in has these two functions, of the types that JACK's headers declare.
    let initialize = unsafe { std::mem::transmute::<*mut c_void, Initialize>(initialize) };
    // SAFETY: as above.
    let finish = unsafe { std::mem::transmute::<*mut c_void, Finish>(finish) };
    Ok(EntryPoints { initialize, finish })
}
