//! The transport: querying, starting and moving it, sync and timebase callbacks.

use std::ffi::{c_int, c_long, c_void};
use std::sync::Arc;

use client::{CycleScope, Error, RequestError, Transport, TransportState, valid};

use crate::callbacks::Context;
use crate::clients::{ClientHandle, OpenClient};
use crate::convert::{FAILED, complain, refuse, request, store};

const NS_PER_US: u64 = 1000;

/// `jack_position_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, packed)]
pub struct Position {
    /// Equal to `unique_2` in a consistent snapshot.
    pub unique_1: u64,
    /// Time of the cycle's start, µs.
    pub usecs: u64,
    /// Hz.
    pub frame_rate: u32,
    /// Transport position in frames.
    pub frame: u32,
    /// Which of the members below are set: bits of `jack_position_bits_t`.
    pub valid: u32,
    /// From 1.
    pub bar: i32,
    /// From 1.
    pub beat: i32,
    /// From 0.
    pub tick: i32,
    /// Ticks from position 0 to the start of this bar.
    pub bar_start_tick: f64,
    /// Upper number of the time signature.
    pub beats_per_bar: f32,
    /// Lower number of the time signature.
    pub beat_type: f32,
    /// Resolution of ticks.
    pub ticks_per_beat: f64,
    /// Tempo.
    pub beats_per_minute: f64,
    /// Time of this cycle's first frame, s.
    pub frame_time: f64,
    /// Time of the next cycle's first frame, s.
    pub next_time: f64,
    /// Frames from the cycle's start to the position of bar, beat and tick.
    pub bbt_offset: u32,
    /// 0 or less: there is no video.
    pub audio_frames_per_video_frame: f32,
    /// Frames from the cycle's start to the next video frame.
    pub video_offset: u32,
    /// `tick` with its fraction.
    pub tick_double: f64,
    /// Always 0.
    pub padding: [i32; 5],
    /// Equal to `unique_1` in a consistent snapshot.
    pub unique_2: u64,
}

/// `JackSyncCallback`.
pub type SyncCallback = unsafe extern "C" fn(u32, *mut Position, *mut c_void) -> c_int;
/// `JackTimebaseCallback`.
pub type TimebaseCallback = unsafe extern "C" fn(u32, u32, *mut Position, c_int, *mut c_void);

impl Position {
    /// Converts the server's position, at a sample rate and the time of a cycle.
    fn of(place: &client::Position, transport: &Transport, frame_rate: u32) -> Self {
        // Any two cycles differ, and so do consistent snapshots of them.
        let unique = u64::from(transport.cycle);
        Self {
            unique_1: unique,
            usecs: transport.wakeup_ns / NS_PER_US,
            frame_rate,
            frame: place.frame,
            valid: place.valid,
            bar: place.bar,
            beat: place.beat,
            tick: place.tick,
            bar_start_tick: place.bar_start_tick,
            beats_per_bar: place.beats_per_bar,
            beat_type: place.beat_type,
            ticks_per_beat: place.ticks_per_beat,
            beats_per_minute: place.beats_per_minute,
            frame_time: place.frame_time,
            next_time: place.next_time,
            bbt_offset: place.bbt_offset,
            audio_frames_per_video_frame: place.audio_frames_per_video_frame,
            video_offset: place.video_offset,
            tick_double: place.tick_double,
            padding: [0; 5],
            unique_2: unique,
        }
    }

    /// Converts to the server's position.
    fn place(self) -> client::Position {
        client::Position {
            frame: self.frame,
            valid: self.valid,
            bar: self.bar,
            beat: self.beat,
            tick: self.tick,
            bbt_offset: self.bbt_offset,
            bar_start_tick: self.bar_start_tick,
            beats_per_bar: self.beats_per_bar,
            beat_type: self.beat_type,
            ticks_per_beat: self.ticks_per_beat,
            beats_per_minute: self.beats_per_minute,
            frame_time: self.frame_time,
            next_time: self.next_time,
            audio_frames_per_video_frame: self.audio_frames_per_video_frame,
            video_offset: self.video_offset,
            tick_double: self.tick_double,
        }
    }
}

/// Returns the transport in the calling thread's cycle, and the sample rate in Hz.
fn transport_of(client: &OpenClient) -> Option<(Transport, u32)> {
    Some((client.session.transport()?, client.session.info()?.sample_rate_hz))
}

/// Returns 0 or -1 without a message, since the call may come from a cycle.
fn quietly(client: ClientHandle, call: impl FnOnce(&OpenClient) -> Result<(), Error>) -> c_int {
    let done = client.pin().is_some_and(|client| call(&client).is_ok());
    if done { 0 } else { FAILED }
}

/// Starts the transport once all slow-sync clients are ready. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_transport_start(client: ClientHandle) {
    // The C function has no result.
    let _ = quietly(client, |client| client.session.start_transport());
}

/// Stops the transport. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_transport_stop(client: ClientHandle) {
    // The C function has no result.
    let _ = quietly(client, |client| client.session.stop_transport());
}

/// Moves the transport. Returns 0, or -1. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_transport_locate(client: ClientHandle, frame: u32) -> c_int {
    quietly(client, |client| client.session.locate_transport(&client::Position::at(frame)))
}

/// Moves the transport to a position with all its members. Returns 0, `EINVAL` for null and for
/// unknown bits in `valid`, or -1. Thread: any.
///
/// # Safety
/// `position` is null or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_transport_reposition(
    client: ClientHandle,
    position: *const Position,
) -> c_int {
    if position.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: not null, so by the caller's promise it may be read. The program's struct is packed.
    let place = unsafe { position.read_unaligned() }.place();
    if place.valid & !valid::ALL != 0 {
        return libc::EINVAL;
    }
    quietly(client, |client| client.session.locate_transport(&place))
}

/// Returns the state and stores the position: on a process thread, that of its cycle's first frame.
/// If the client is not open, the transport is stopped at frame 0 with a sample rate of 0. Thread:
/// any.
///
/// # Safety
/// `position` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_transport_query(
    client: ClientHandle,
    position: *mut Position,
) -> u32 {
    let found = client.pin().and_then(|client| transport_of(&client));
    let result =
        found.map(|(transport, rate_hz)| Position::of(&transport.position, &transport, rate_hz));
    // SAFETY: the caller's promise.
    unsafe { store(position, result.unwrap_or_default()) };
    found.map_or(TransportState::Stopped, |(transport, _)| transport.state) as u32
}

/// Returns the estimated current frame of the transport. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_current_transport_frame(client: ClientHandle) -> u32 {
    client.pin().map_or(0, |client| client.session.transport_frame())
}

/// Sets the sync callback, for which the transport waits before it rolls; null removes it. Returns
/// 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_sync_callback(
    client: ClientHandle,
    callback: Option<SyncCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    request(client, |client| {
        client.session.set_sync_callback(callback.map(|callback| {
            Arc::new(move |cycle: &CycleScope<'_>| {
                let transport = cycle.transport();
                let mut position =
                    Position::of(&transport.position, &transport, cycle.sample_rate_hz());
                // SAFETY: the program's callback, on the process thread; the position is valid
                // during the call.
                unsafe {
                    callback(transport.state as u32, &raw mut position, context.pointer()) != 0
                }
            }) as client::SyncCallback
        }))
    })
}

/// Sets how long the transport waits for slow-sync clients, in µs. Returns 0, or -1. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_sync_timeout(client: ClientHandle, timeout_us: u64) -> c_int {
    quietly(client, |client| client.session.set_sync_timeout(timeout_us))
}

/// Makes the client the timebase master, whose callback completes positions. Returns 0, `EBUSY` if
/// the request is conditional and there is a master, or `EINVAL` for any other failure.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_timebase_callback(
    client: ClientHandle,
    conditional: c_int,
    callback: Option<TimebaseCallback>,
    argument: *mut c_void,
) -> c_int {
    let Some(callback) = callback else {
        refuse(
            "jack_set_timebase_callback: there is no callback; use jack_release_timebase to give the role back",
        );
        return libc::EINVAL;
    };
    let context = Context(argument);
    let completed = move |cycle: &CycleScope<'_>, place: &mut client::Position, is_new: bool| {
        let transport = cycle.transport();
        let mut position = Position::of(place, &transport, cycle.sample_rate_hz());
        let (state, frames) = (transport.state as u32, cycle.frames());
        // SAFETY: the program's callback, on the process thread; the position is valid during the
        // call.
        unsafe {
            callback(state, frames, &raw mut position, c_int::from(is_new), context.pointer())
        };
        *place = position.place();
    };
    let taken = client.pin().ok_or(Error::Closed);
    let taken = taken
        .and_then(|client| client.session.take_timebase(conditional != 0, Arc::new(completed)));
    match taken {
        Ok(()) => 0,
        // A conditional request leaves the role to another client, which is not an error to report.
        Err(Error::Refused(RequestError::TimebaseTaken(_))) => libc::EBUSY,
        Err(error) => {
            complain(&error);
            libc::EINVAL
        }
    }
}

/// Stops being the timebase master. Returns 0, or `EINVAL` if the client is not.
#[unsafe(no_mangle)]
pub extern "C" fn jack_release_timebase(client: ClientHandle) -> c_int {
    let released = client.pin().is_some_and(|client| client.session.release_timebase().is_ok());
    if released { 0 } else { libc::EINVAL }
}

/// `jack_transport_info_t`, from the earlier transport interface.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct OldInfo {
    frame_rate: u32,
    usecs: u64,
    valid: u32,
    transport_state: u32,
    frame: u32,
    loop_start: u32,
    loop_end: u32,
    smpte_offset: c_long,
    smpte_frame_rate: f32,
    bar: c_int,
    beat: c_int,
    tick: c_int,
    bar_start_tick: f64,
    beats_per_bar: f32,
    beat_type: f32,
    ticks_per_beat: f64,
    beats_per_minute: f64,
}

/// `JackTransportState | JackTransportPosition`
const OLD_VALID: u32 = 1 | 2;
/// `JackTransportBBT`
const OLD_BBT: u32 = 1 << 4;

/// Does what [`jack_transport_query`] does, with the struct of the earlier interface; zeroes it if
/// the client is not open. Thread: any.
///
/// # Safety
/// `info` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_transport_info(client: ClientHandle, info: *mut OldInfo) {
    let found = client.pin().and_then(|client| transport_of(&client));
    let result = found.map(|(transport, frame_rate)| {
        let place = transport.position;
        OldInfo {
            frame_rate,
            usecs: transport.wakeup_ns / NS_PER_US,
            valid: OLD_VALID | if place.valid & valid::BBT != 0 { OLD_BBT } else { 0 },
            transport_state: transport.state as u32,
            frame: place.frame,
            bar: place.bar,
            beat: place.beat,
            tick: place.tick,
            bar_start_tick: place.bar_start_tick,
            beats_per_bar: place.beats_per_bar,
            beat_type: place.beat_type,
            ticks_per_beat: place.ticks_per_beat,
            beats_per_minute: place.beats_per_minute,
            ..OldInfo::default()
        }
    });
    if !info.is_null() {
        // SAFETY: the caller's promise. As bytes: with what lies between the fields, and wherever a
        // packed struct begins.
        unsafe { info.cast::<u8>().write_bytes(0, size_of::<OldInfo>()) };
    }
    if let Some(result) = result {
        // SAFETY: the caller's promise.
        unsafe { store(info, result) };
    }
}

/// Does nothing: the timebase callback provides positions. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_transport_info(_client: ClientHandle, _info: *mut OldInfo) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_laid_out_as_in_c() {
        assert_eq!(size_of::<Position>(), 136);
        #[cfg(target_pointer_width = "64")]
        assert_eq!(size_of::<OldInfo>(), 96);
    }

    #[test]
    fn every_member_of_a_position_comes_back_from_the_program_as_it_was_given() {
        let place = client::Position {
            frame: 1,
            valid: valid::ALL,
            bar: 2,
            beat: 3,
            tick: 4,
            bbt_offset: 5,
            bar_start_tick: 6.0,
            beats_per_bar: 7.0,
            beat_type: 8.0,
            ticks_per_beat: 9.0,
            beats_per_minute: 10.0,
            frame_time: 11.0,
            next_time: 12.0,
            audio_frames_per_video_frame: 13.0,
            video_offset: 14,
            tick_double: 15.0,
        };
        assert_eq!(Position::of(&place, &Transport::default(), 48_000).place(), place);
    }
}
