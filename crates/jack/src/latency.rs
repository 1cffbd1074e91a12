//! Latencies, in frames. The getters may be called from any thread.

use std::ffi::c_int;

use client::port_flags::{OUTPUT, PHYSICAL};
use client::{Request, Requester};

use crate::clients::ClientHandle;
use crate::convert::{NO_SUCH_PORT, complain, refuse, request, store};
use crate::ports::PortHandle;

/// `jack_latency_range_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, packed)]
pub struct Range {
    /// Latency of the shortest path.
    pub min: u32,
    /// Latency of the longest path.
    pub max: u32,
}

/// `JackCaptureLatency`; the only other mode is `JackPlaybackLatency`.
const CAPTURE: u32 = 0;

fn range(port: PortHandle, capture: bool) -> Range {
    let found =
        port.pin().and_then(|port| port.client.session.registry().port_latency(port.id, capture));
    found.map_or_else(Range::default, |range| Range { min: range.min, max: range.max })
}

fn flags(port: PortHandle) -> u32 {
    port.pin().and_then(|port| port.client.session.registry().port_flags(port.id)).unwrap_or(0)
}

/// Stores a port's range of one mode; 0 to 0 if there is no such port. Thread: any.
///
/// # Safety
/// `result` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_get_latency_range(
    port: PortHandle,
    mode: u32,
    result: *mut Range,
) {
    // SAFETY: the caller's promise.
    unsafe { store(result, range(port, mode == CAPTURE)) };
}

/// Sets the range of one of the client's ports in one mode. For latency callbacks.
///
/// # Safety
/// `range` is null or points to a range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_port_set_latency_range(
    port: PortHandle,
    mode: u32,
    range: *const Range,
) {
    if range.is_null() {
        return;
    }
    // SAFETY: not null, so the caller has promised a range.
    let range = unsafe { range.read_unaligned() };
    set(port, mode == CAPTURE, range);
}

fn set(port: PortHandle, capture: bool, Range { min, max }: Range) {
    let Some(port) = port.pin() else {
        refuse(NO_SUCH_PORT);
        return;
    };
    let result =
        port.client.session.request(Request::SetLatency { port: port.id, capture, min, max });
    if let Err(error) = result {
        complain(&error);
    }
}

/// Makes all clients recompute their latencies. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_recompute_total_latencies(client: ClientHandle) -> c_int {
    request(client, |client| client.session.request(Request::RecomputeLatencies))
}

/// Like [`jack_recompute_total_latencies`]: one port's latency cannot be computed without the
/// others'.
#[unsafe(no_mangle)]
pub extern "C" fn jack_recompute_total_latency(client: ClientHandle, _port: PortHandle) -> c_int {
    jack_recompute_total_latencies(client)
}

/// Sets both ends of one range of an own port: the capture latency of an output, the playback
/// latency of an input.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_set_latency(port: PortHandle, frames: u32) {
    set(port, flags(port) & OUTPUT != 0, Range { min: frames, max: frames });
}

/// Returns the latency of the device behind a physical port; 0 for other ports. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_get_latency(port: PortHandle) -> u32 {
    match flags(port) {
        flags if flags & PHYSICAL == 0 => 0,
        flags => range(port, flags & OUTPUT != 0).max,
    }
}

/// Returns the longest latency from an input port back to a device, or from an output port on to
/// one, including the device's own behind the port itself. 0 if there is no such port. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_get_total_latency(client: ClientHandle, port: PortHandle) -> u32 {
    if client.pin().is_none_or(|client| port.id_for(&client).is_none()) {
        return 0;
    }
    let onward = range(port, flags(port) & OUTPUT == 0).max;
    onward.saturating_add(jack_port_get_latency(port))
}
