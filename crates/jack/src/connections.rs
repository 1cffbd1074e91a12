//! Making, removing and listing connections.

use std::ffi::{c_char, c_int};
use std::ptr::null;

use client::{Error, Request, RequestError, Requester, Session};

use crate::clients::{ClientHandle, OpenClient, Pinned};
use crate::convert::{FAILED, NO_SUCH_PORT, answer, complain, refuse, text};
use crate::ports::{PinnedPort, PortHandle};
use crate::ports_query::{find, names};

/// Returns two port names and an open client.
///
/// # Safety
/// Both names are null or C strings that stay unchanged for `'a`.
unsafe fn ends<'a>(
    client: ClientHandle,
    source: *const c_char,
    destination: *const c_char,
) -> Option<(Pinned, &'a str, &'a str)> {
    // SAFETY: the caller's promise.
    unsafe { Some((client.pin()?, text(source)?, text(destination)?)) }
}

/// Connects two ports. Returns 0, `EEXIST` if they are connected already, or -1.
///
/// # Safety
/// Both names are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_connect(
    client: ClientHandle,
    source: *const c_char,
    destination: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((client, source, destination)) = (unsafe { ends(client, source, destination) }) else {
        return refuse("jack_connect: the client is not open, or a name is missing");
    };
    match client.session.connect(source, destination) {
        Err(error @ Error::Refused(RequestError::AlreadyConnected { .. })) => {
            complain(&error);
            libc::EEXIST
        }
        result => answer(result),
    }
}

/// Removes a connection. Returns 0, or -1.
///
/// # Safety
/// Both names are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_disconnect(
    client: ClientHandle,
    source: *const c_char,
    destination: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((client, source, destination)) = (unsafe { ends(client, source, destination) }) else {
        return refuse("jack_disconnect: the client is not open, or a name is missing");
    };
    answer(client.session.disconnect(source, destination))
}

/// Removes all connections of a port. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_disconnect(client: ClientHandle, port: PortHandle) -> c_int {
    let found = client.pin().and_then(|client| Some((port.id_for(&client)?, client)));
    let Some((port, client)) = found else { return refuse(NO_SUCH_PORT) };
    answer(client.session.request(Request::DisconnectPort { port }))
}

/// Returns the number of the port's connections; -1 if there is no such port. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_connected(port: PortHandle) -> c_int {
    let connected =
        port.pin().and_then(|port| port.client.session.registry().port_connected(port.id));
    connected.and_then(|count| c_int::try_from(count).ok()).unwrap_or(FAILED)
}

/// Returns 1 if the port is connected to the port with that name or alias, 0 if not, -1 if there is
/// no such port.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_connected_to(port: PortHandle, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let Some((PinnedPort { client, id }, name)) = port.pin().zip(unsafe { text(name) }) else {
        return FAILED;
    };
    let other = find(&client.session, name);
    c_int::from(
        other.is_some_and(|other| client.session.registry().connections(id).contains(&other)),
    )
}

/// Returns the names of the ports that any port is connected to, terminated by null; null if there
/// are none. Freed with `jack_free`.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_get_connections(port: PortHandle) -> *const *const c_char {
    port.pin().map_or(null(), |port| peers(&port.client.session, port.id))
}

/// Like [`jack_port_get_connections`].
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_get_all_connections(
    client: ClientHandle,
    port: PortHandle,
) -> *const *const c_char {
    let with_port = |client: &OpenClient| Some(peers(&client.session, port.id_for(client)?));
    client.pin().and_then(|client| with_port(&client)).unwrap_or(null())
}

fn peers(session: &Session, port: u32) -> *const *const c_char {
    names(session, session.registry().connections(port))
}
