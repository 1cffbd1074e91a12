//! Listening to a device's inputs at its outputs. Servers of this release cannot ask their devices for it.

use std::ffi::{c_char, c_int};

use crate::clients::ClientHandle;
use crate::convert::FAILED;
use crate::ports::PortHandle;

/// Fails: no port can be monitored yet. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_request_monitor(_port: PortHandle, _on: c_int) -> c_int {
    FAILED
}

/// Fails: no port can be monitored yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_request_monitor_by_name(
    _client: ClientHandle,
    _name: *const c_char,
    _on: c_int,
) -> c_int {
    FAILED
}

/// Fails: no port can be monitored yet. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_ensure_monitor(_port: PortHandle, _on: c_int) -> c_int {
    FAILED
}

/// Whether somebody listens to the port; 0 if there is no such port. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_monitoring_input(port: PortHandle) -> c_int {
    let monitors = port.pin().and_then(|port| port.client.session.registry().port_monitors(port.id));
    c_int::from(monitors.is_some_and(|monitors| monitors > 0))
}
