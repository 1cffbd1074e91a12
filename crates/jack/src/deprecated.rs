//! What the headers keep for old programs and JACK itself has given up.

use std::ffi::c_int;

use crate::clients::ClientHandle;
use crate::convert::{NO_SUCH_PORT, answer, refuse};
use crate::ports::PortHandle;

/// Fails: the timebase is taken with `jack_set_timebase_callback`.
#[unsafe(no_mangle)]
pub extern "C" fn jack_engine_takeover_timebase(_client: ClientHandle) -> c_int {
    refuse("jack_engine_takeover_timebase has no function: use jack_set_timebase_callback")
}

/// Answers 0 frames: the loop waits with `jack_cycle_wait`. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_thread_wait(_client: ClientHandle, _status: c_int) -> u32 {
    0
}

/// Has output port `destination` say what input port `source` hears, without the program's doing: 0, or -1. Both are ports
/// of one client of this process.
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

/// Ends what [`jack_port_tie`] began, at either port: 0, or -1 for what is no port of this process.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_untie(port: PortHandle) -> c_int {
    match port.pin() {
        Some(port) => answer(port.client.session.untie_port(port.id)),
        None => refuse(NO_SUCH_PORT),
    }
}
