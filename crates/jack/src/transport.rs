//! The transport. Servers of this release have none: it stands still at frame 0, and nobody can lead or slow it.

use std::ffi::{c_int, c_void};

use crate::clients::ClientHandle;
use crate::convert::{FAILED, refuse, store};

/// `JackTransportStopped`
const STOPPED: u32 = 0;

/// `jack_position_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, packed)]
pub struct Position {
    /// Equal to `unique_2` in a whole snapshot.
    pub unique_1: u64,
    /// Date of the cycle's start, µs.
    pub usecs: u64,
    /// Hz.
    pub frame_rate: u32,
    /// Frames from the start of the piece.
    pub frame: u32,
    /// Which of the members below are set: bits of `jack_position_bits_t`.
    pub valid: u32,
    /// From 1.
    pub bar: i32,
    /// From 1.
    pub beat: i32,
    /// From 0.
    pub tick: i32,
    /// Ticks from the start of the piece to this bar.
    pub bar_start_tick: f64,
    /// Upper number of the time signature.
    pub beats_per_bar: f32,
    /// Lower number of the time signature.
    pub beat_type: f32,
    /// Resolution.
    pub ticks_per_beat: f64,
    /// Tempo.
    pub beats_per_minute: f64,
    /// Of this cycle's first frame, s.
    pub frame_time: f64,
    /// Of the next cycle's first frame, s.
    pub next_time: f64,
    /// Frames from the cycle's start to the date of bar, beat and tick.
    pub bbt_offset: u32,
    /// Not more than 0: there is no video.
    pub audio_frames_per_video_frame: f32,
    /// Frames from the cycle's start to the next video frame.
    pub video_offset: u32,
    /// `tick` with its fraction.
    pub tick_double: f64,
    /// 0.
    pub padding: [i32; 5],
    /// Equal to `unique_1` in a whole snapshot.
    pub unique_2: u64,
}

/// `JackSyncCallback`.
pub type SyncCallback = unsafe extern "C" fn(u32, *mut Position, *mut c_void) -> c_int;
/// `JackTimebaseCallback`.
pub type TimebaseCallback = unsafe extern "C" fn(u32, u32, *mut Position, c_int, *mut c_void);

/// Does nothing: there is no transport yet. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_transport_start(_client: ClientHandle) {}

/// Does nothing: there is no transport yet. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_transport_stop(_client: ClientHandle) {}

/// Fails: there is no transport yet. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_transport_locate(_client: ClientHandle, _frame: u32) -> c_int {
    FAILED
}

/// Fails with `EINVAL`: there is no transport yet. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_transport_reposition(_client: ClientHandle, _position: *const Position) -> c_int {
    libc::EINVAL
}

/// Stopped, at frame 0; the rate is 0 if the client is not open. Thread: any.
///
/// # Safety
/// `position` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_transport_query(client: ClientHandle, position: *mut Position) -> u32 {
    let info = client.pin().and_then(|client| client.session.info());
    let frame_rate = info.map_or(0, |info| info.sample_rate_hz);
    let usecs = info.map_or(0, |info| info.wakeup_ns / 1000);
    // SAFETY: the caller's promise.
    unsafe { store(position, Position { usecs, frame_rate, ..Position::default() }) };
    STOPPED
}

/// Frame 0: there is no transport yet. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_current_transport_frame(_client: ClientHandle) -> u32 {
    0
}

/// Fails: there is no transport yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_sync_callback(
    _client: ClientHandle,
    _callback: Option<SyncCallback>,
    _argument: *mut c_void,
) -> c_int {
    refuse("jack_set_sync_callback: this server has no transport yet")
}

/// Fails: there is no transport yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_sync_timeout(_client: ClientHandle, _timeout_us: u64) -> c_int {
    FAILED
}

/// Fails with `EINVAL`: there is no transport yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_timebase_callback(
    _client: ClientHandle,
    _conditional: c_int,
    _callback: Option<TimebaseCallback>,
    _argument: *mut c_void,
) -> c_int {
    refuse("jack_set_timebase_callback: this server has no transport yet");
    libc::EINVAL
}

/// Fails with `EINVAL`: this client does not lead, since there is no transport yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_release_timebase(_client: ClientHandle) -> c_int {
    libc::EINVAL
}

/// Bytes of a `jack_transport_info_t`.
const OLD_INFO_BYTES: usize = 120;

/// Zeroes the struct of the transport interface before this one.
///
/// # Safety
/// `info` is null or points to a `jack_transport_info_t` that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_transport_info(_client: ClientHandle, info: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { store(info.cast(), [0_u8; OLD_INFO_BYTES]) };
}

/// Does nothing: the transport interface before this one is gone.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_transport_info(_client: ClientHandle, _info: *mut c_void) {}
