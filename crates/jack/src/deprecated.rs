//! Functions that JACK has deprecated and that the headers keep for old programs.

use std::ffi::c_int;

use crate::clients::ClientHandle;
use crate::convert::{NO_SUCH_PORT, answer, refuse};
use crate::ports::PortHandle;

/// Always fails: a program becomes timebase master with `jack_set_timebase_callback`.
#[unsafe(no_mangle)]
pub extern "C" fn jack_engine_takeover_timebase(_client: ClientHandle) -> c_int {
    refuse("jack_engine_takeover_timebase has no function: use jack_set_timebase_callback")
}

/// Always returns 0: a loop waits with `jack_cycle_wait`. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_thread_wait(_client: ClientHandle, _status: c_int) -> u32 {
    0
}

/// Makes output port `destination` repeat what input port `source` receives, without the program's
/// part. Both are ports of one client of this process. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_tie(source: PortHandle, destination: PortHandle) -> c_int {
    let Some((source, destination)) = source.pin().zip(destination.pin()) else {
        return refuse(NO_SUCH_PORT);
    };
    if source.client.server != destination.client.server {
        return refuse("jack_port_tie: the ports are of different servers");
    }
    answer(source.client.session.tie_ports(source.id, destination.id))
}

/// Removes the tie made by [`jack_port_tie`], by either port. Returns 0, or -1 if it is not a port
/// of this process.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_untie(port: PortHandle) -> c_int {
    match port.pin() {
        Some(port) => answer(port.client.session.untie_port(port.id)),
        None => refuse(NO_SUCH_PORT),
    }
}
