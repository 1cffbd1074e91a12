//! `libjacknet.so.0` (`net.h`): audio over the network, which this release does not support.
//!
//! Every function fails: functions that return a handle return null, all others -1. The functions
//! that the library shares with `libjack.so.0` are included as well.

extern crate jack as _;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

/// A C string, which is not read.
type Text = *const c_char;

/// The result of a failed call.
const FAILED: c_int = -1;

fn say(function: &str) {
    jack::messages::error(format_args!(
        "{function}: consort has no network audio of its own; zita-njbridge and jacktrip are clients that do it"
    ));
}

/// Returns -1, with a message.
fn refuse(function: &str) -> c_int {
    say(function);
    FAILED
}

/// Returns null, with a message.
fn none(function: &str) -> *const c_void {
    say(function);
    null()
}

/// Connects to a master over the network: null, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_slave_open(
    _ip: Text,
    _port: c_int,
    _name: Text,
    _request: *const c_void,
    _result: *const c_void,
) -> *const c_void {
    none("jack_net_slave_open")
}

/// Ends a connection to a master: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_slave_close(_net: *const c_void) -> c_int {
    refuse("jack_net_slave_close")
}

/// Sets a slave's callback: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_net_slave_process_callback(
    _net: *const c_void,
    _callback: Option<unsafe extern "C" fn()>,
    _argument: *const c_void,
) -> c_int {
    refuse("jack_set_net_slave_process_callback")
}

/// Starts a slave: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_slave_activate(_net: *const c_void) -> c_int {
    refuse("jack_net_slave_activate")
}

/// Stops a slave: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_slave_deactivate(_net: *const c_void) -> c_int {
    refuse("jack_net_slave_deactivate")
}

/// Sets a slave's callback: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_net_slave_buffer_size_callback(
    _net: *const c_void,
    _callback: Option<unsafe extern "C" fn()>,
    _argument: *const c_void,
) -> c_int {
    refuse("jack_set_net_slave_buffer_size_callback")
}

/// Sets a slave's callback: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_net_slave_sample_rate_callback(
    _net: *const c_void,
    _callback: Option<unsafe extern "C" fn()>,
    _argument: *const c_void,
) -> c_int {
    refuse("jack_set_net_slave_sample_rate_callback")
}

/// Sets a slave's callback: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_net_slave_shutdown_callback(
    _net: *const c_void,
    _callback: Option<unsafe extern "C" fn()>,
    _argument: *const c_void,
) -> c_int {
    refuse("jack_set_net_slave_shutdown_callback")
}

/// Sets a slave's callback: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_net_slave_restart_callback(
    _net: *const c_void,
    _callback: Option<unsafe extern "C" fn()>,
    _argument: *const c_void,
) -> c_int {
    refuse("jack_set_net_slave_restart_callback")
}

/// Sets a slave's callback: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_net_slave_error_callback(
    _net: *const c_void,
    _callback: Option<unsafe extern "C" fn()>,
    _argument: *const c_void,
) -> c_int {
    refuse("jack_set_net_slave_error_callback")
}

/// Waits for a slave on the network: null, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_master_open(
    _ip: Text,
    _port: c_int,
    _request: *const c_void,
    _result: *const c_void,
) -> *const c_void {
    none("jack_net_master_open")
}

/// Ends a connection to a slave: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_master_close(_net: *const c_void) -> c_int {
    refuse("jack_net_master_close")
}

/// Receives from a slave: -1, and no message, since it is called in cycles.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_master_recv(
    _net: *const c_void,
    _audio: c_int,
    _audio_buffers: *const c_void,
    _midi: c_int,
    _midi_buffers: *const c_void,
) -> c_int {
    FAILED
}

/// Receives from a slave: -1, and no message, since it is called in cycles.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_master_recv_slice(
    _net: *const c_void,
    _audio: c_int,
    _audio_buffers: *const c_void,
    _midi: c_int,
    _midi_buffers: *const c_void,
    _frames: c_int,
) -> c_int {
    FAILED
}

/// Sends to a slave: -1, and no message, since it is called in cycles.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_master_send(
    _net: *const c_void,
    _audio: c_int,
    _audio_buffers: *const c_void,
    _midi: c_int,
    _midi_buffers: *const c_void,
) -> c_int {
    FAILED
}

/// Sends to a slave: -1, and no message, since it is called in cycles.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_master_send_slice(
    _net: *const c_void,
    _audio: c_int,
    _audio_buffers: *const c_void,
    _midi: c_int,
    _midi_buffers: *const c_void,
    _frames: c_int,
) -> c_int {
    FAILED
}

/// Makes an adapter of sample rates: null, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_create_adapter(
    _input: c_int,
    _output: c_int,
    _host_frames: u32,
    _host_rate: u32,
    _adapted_frames: u32,
    _adapted_rate: u32,
) -> *const c_void {
    none("jack_create_adapter")
}

/// Ends an adapter: -1, and a message.
#[unsafe(no_mangle)]
pub extern "C" fn jack_destroy_adapter(_adapter: *const c_void) -> c_int {
    refuse("jack_destroy_adapter")
}

/// Runs an adapter: -1, and no message, since it is called in cycles.
#[unsafe(no_mangle)]
pub extern "C" fn jack_adapter_push_and_pull(
    _adapter: *const c_void,
    _input: *const c_void,
    _output: *const c_void,
    _frames: u32,
) -> c_int {
    FAILED
}

/// Runs an adapter: -1, and no message, since it is called in cycles.
#[unsafe(no_mangle)]
pub extern "C" fn jack_adapter_pull_and_push(
    _adapter: *const c_void,
    _input: *const c_void,
    _output: *const c_void,
    _frames: u32,
) -> c_int {
    FAILED
}

/// Returns 0: no slave is active.
#[unsafe(no_mangle)]
pub extern "C" fn jack_net_slave_is_active(_net: *const c_void) -> c_int {
    0
}

/// Does nothing: there is no adapter.
#[unsafe(no_mangle)]
pub extern "C" fn jack_flush_adapter(_adapter: *const c_void) {}
