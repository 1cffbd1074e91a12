//! Frames and times; see also `jack_get_time`. For any thread.

use std::ffi::c_int;

use crate::clients::ClientHandle;
use crate::convert::{FAILED, store};

const NS_PER_US: u64 = 1000;

/// Returns the estimated current frame; 0 if the client is not open. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_frame_time(client: ClientHandle) -> u32 {
    client.pin().map_or(0, |client| client.session.frame_time())
}

// With the other functions that every cycle calls, on one page.
/// Returns the cycle's first frame. Thread: cycle.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.cycle")]
pub extern "C" fn jack_last_frame_time(client: ClientHandle) -> u32 {
    client.pin().map_or(0, |client| client.session.last_frame_time())
}

/// Returns the frames since the driver woke for the cycle. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_frames_since_cycle_start(client: ClientHandle) -> u32 {
    client.pin().map_or(0, |client| client.session.frames_since_cycle_start())
}

/// Returns the cycle's first frame, its smoothed time, the next cycle's, and the smoothed duration,
/// all times in µs. -1 before the first cycle. Thread: cycle.
///
/// # Safety
/// Each pointer is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_cycle_times(
    client: ClientHandle,
    first_frame: *mut u32,
    start_us: *mut u64,
    next_us: *mut u64,
    length_us: *mut f32,
) -> c_int {
    let Some(times) = client.pin().and_then(|client| client.session.cycle_times()) else {
        return FAILED;
    };
    // SAFETY: the caller's promise.
    unsafe {
        store(first_frame, times.frames);
        store(start_us, times.current_ns / NS_PER_US);
        store(next_us, times.next_ns / NS_PER_US);
        store(length_us, (times.period_ns / NS_PER_US as f64) as f32);
    }
    0
}

/// Returns the time of a frame in µs: of the occurrence nearest to now. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_frames_to_time(client: ClientHandle, frame: u32) -> u64 {
    client.pin().map_or(0, |client| client.session.frames_to_time(frame) / NS_PER_US)
}

/// Returns the frame at a time in µs. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_time_to_frames(client: ClientHandle, time_us: u64) -> u32 {
    client
        .pin()
        .map_or(0, |client| client.session.time_to_frames(time_us.saturating_mul(NS_PER_US)))
}
