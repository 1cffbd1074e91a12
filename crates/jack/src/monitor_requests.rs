//! Requests to monitor a device's inputs at its outputs. Requests are counted for every port, as in
//! JACK2, whether or not its device supports it; the owner of the device polls the count.

use std::ffi::{c_char, c_int};

use client::{Request, Requester};

use crate::clients::ClientHandle;
use crate::convert::{NO_SUCH_PORT, answer, refuse, text};
use crate::ports::PortHandle;

fn request(port: PortHandle, on: c_int, ensure: bool) -> c_int {
    let Some(port) = port.pin() else { return refuse(NO_SUCH_PORT) };
    answer(port.client.session.request(Request::Monitor { port: port.id, on: on != 0, ensure }))
}

/// Adds (not 0) or removes a request to monitor a port and, for an input, all ports connected to
/// it. Returns 0, or -1. Not within a cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_request_monitor(port: PortHandle, on: c_int) -> c_int {
    request(port, on, false)
}

/// Like [`jack_port_request_monitor`], for the port with this name or alias.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_request_monitor_by_name(
    client: ClientHandle,
    name: *const c_char,
    on: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((client, name)) = client.pin().zip(unsafe { text(name) }) else {
        return refuse(NO_SUCH_PORT);
    };
    let Some(port) = client.session.registry().port_by_name(name) else {
        return refuse(NO_SUCH_PORT);
    };
    answer(client.session.request(Request::Monitor { port, on: on != 0, ensure: false }))
}

/// Sets the number of requests to one or none, regardless of other requests. Returns 0, or -1. Not
/// within a cycle.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_ensure_monitor(port: PortHandle, on: c_int) -> c_int {
    request(port, on, true)
}

/// Returns whether there are monitor requests for the port; 0 if there is no such port. Thread:
/// any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_monitoring_input(port: PortHandle) -> c_int {
    let monitors =
        port.pin().and_then(|port| port.client.session.registry().port_monitors(port.id));
    c_int::from(monitors.is_some_and(|monitors| monitors > 0))
}
