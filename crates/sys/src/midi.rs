//! Settings of the kernel's MIDI interfaces for which the binding of libasound has no call: the
//! rate of a queue's timer, and the size of an input's buffer.
//!
//! The descriptors belong to that library. Layouts and numbers are those of `sound/asequencer.h`
//! and `sound/asound.h`.

use std::io;
use std::os::fd::RawFd;

/// `struct snd_seq_queue_timer`.
#[repr(C)]
struct QueueTimer {
    queue: i32,
    kind: i32,
    /// Number of the ALSA timer.
    timer: [i32; 5],
    frequency_hz: u32,
    reserved: [u8; 64],
}

/// `struct snd_rawmidi_params`.
#[repr(C)]
struct RawParameters {
    stream: i32,
    buffer_bytes: usize,
    least_bytes: usize,
    no_active_sensing: u32,
    mode: u32,
    reserved: [u8; 12],
}

const GET_QUEUE_TIMER: libc::Ioctl = libc::_IOWR::<QueueTimer>(b'S' as u32, 0x45);
const SET_QUEUE_TIMER: libc::Ioctl = libc::_IOW::<QueueTimer>(b'S' as u32, 0x46);
const SET_RAW_PARAMETERS: libc::Ioctl = libc::_IOWR::<RawParameters>(b'W' as u32, 0x10);

/// `SND_RAWMIDI_STREAM_INPUT`.
const INPUT: i32 = 1;
/// Each piece carries the `CLOCK_MONOTONIC` time at which it arrived.
const WITH_TIMESTAMPS: u32 = 1 | (2 << 3);

/// Sets the tick rate of the timer of a sequencer's queue, in which no events wait. The kernel
/// ticks between 10 and 6250 times a second; its clock is read between ticks to the nanosecond.
///
/// # Errors
/// The errors of `ioctl`: `ENOTTY` if the descriptor is not a sequencer's, `EPERM` if the queue is
/// another client's.
pub fn set_queue_timer_hz(sequencer: RawFd, queue: i32, frequency_hz: u32) -> io::Result<()> {
    let mut timer =
        QueueTimer { queue, kind: 0, timer: [0; 5], frequency_hz: 0, reserved: [0; 64] };
    // SAFETY: a descriptor of another kind has no such call; the kernel fills what lives through
    // the call.
    check(unsafe { libc::ioctl(sequencer, GET_QUEUE_TIMER, &raw mut timer) })?;
    timer.frequency_hz = frequency_hz;
    // SAFETY: as above; the kernel only reads.
    check(unsafe { libc::ioctl(sequencer, SET_QUEUE_TIMER, &raw const timer) })
}

/// Sets the kernel's buffer of a raw MIDI input to `bytes`, a multiple of 32. With
/// `has_timestamps`, each piece has a timestamp, as the library must have configured before. What
/// has arrived is discarded.
///
/// # Errors
/// Errors of `ioctl`: `ENOTTY` if the descriptor is not a raw MIDI device's, `EINVAL` for a size
/// out of range.
pub fn set_raw_input_bytes(device: RawFd, bytes: usize, has_timestamps: bool) -> io::Result<()> {
    let mode = if has_timestamps { WITH_TIMESTAMPS } else { 0 };
    let mut parameters = RawParameters {
        stream: INPUT,
        buffer_bytes: bytes,
        least_bytes: 1,
        no_active_sensing: 1,
        mode,
        reserved: [0; 12],
    };
    // SAFETY: a descriptor of another kind has no such call; the kernel reads and fills what lives
    // through the call.
    check(unsafe { libc::ioctl(device, SET_RAW_PARAMETERS, &raw mut parameters) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn layouts_are_as_long_as_the_kernels() {
        assert_eq!(size_of::<QueueTimer>(), 96);
        assert_eq!(size_of::<RawParameters>(), if size_of::<usize>() == 8 { 48 } else { 32 });
    }

    #[test]
    fn a_file_that_is_not_a_midi_device_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(set_queue_timer_hz(file.as_raw_fd(), 0, 10).is_err());
        assert!(set_raw_input_bytes(file.as_raw_fd(), 4096, false).is_err());
    }
}
