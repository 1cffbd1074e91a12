//! What the headers keep for old programs and JACK itself has given up.

use std::ffi::c_int;

use crate::clients::ClientHandle;
use crate::convert::refuse;
use crate::ports::PortHandle;

/// Fails: the timebase is taken with `jack_set_timebase_callback`.
#[unsafe(no_mangle)]
pub extern "C" fn jack_engine_takeover_timebase(_client: ClientHandle) -> c_int {
    refuse("jack_engine_takeover_timebase has no function: use jack_set_timebase_callback")
}

/// Answers 0 frames: the loop waits with `jack_cycle_wait`.
#[unsafe(no_mangle)]
pub extern "C" fn jack_thread_wait(_client: ClientHandle, _status: c_int) -> u32 {
    0
}

/// Fails: ports cannot be tied together yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_tie(_source: PortHandle, _destination: PortHandle) -> c_int {
    refuse("jack_port_tie: this library cannot tie ports yet")
}

/// Fails: there are no tied ports.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_untie(_port: PortHandle) -> c_int {
    refuse("jack_port_untie: this library cannot tie ports yet")
}
