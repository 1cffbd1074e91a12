//! Events in MIDI buffers. The buffer is always this process's own memory. A pointer that did not
//! come from `jack_port_get_buffer`, or from a port that is not MIDI, is detected by its contents
//! and answered with an error.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use client::midi::{MidiError, MidiReader, MidiWords, MidiWriter};

use crate::convert::store;

/// `jack_midi_event_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// Frames from the cycle's start.
    pub time: u32,
    /// Size in bytes.
    pub size: usize,
    /// The message, valid in this cycle.
    pub buffer: *mut u8,
}

/// # Safety
/// `buffer` is null or what `jack_port_get_buffer` has answered in this cycle.
unsafe fn words<'a>(buffer: *mut c_void) -> Option<&'a MidiWords> {
    let words = buffer.cast::<MidiWords>();
    // SAFETY: not null and aligned. Every buffer that the caller may have got is at least as large
    // as a MIDI buffer and stays mapped in this cycle; the words are atomics, which tolerate any
    // other use of the memory.
    (!words.is_null() && words.is_aligned()).then(|| unsafe { &*words })
}

/// # Safety
/// See [`words`].
unsafe fn reader<'a>(buffer: *mut c_void) -> Option<MidiReader<'a>> {
    // SAFETY: the same contract.
    unsafe { words(buffer) }.and_then(MidiReader::of)
}

/// # Safety
/// See [`words`].
unsafe fn writer<'a>(buffer: *mut c_void) -> Option<MidiWriter<'a>> {
    // SAFETY: the same contract.
    unsafe { words(buffer) }.and_then(MidiWriter::of)
}

/// Returns the number of events; 0 if this is not a MIDI buffer. Thread: cycle.
///
/// # Safety
/// `buffer` is null or the result of `jack_port_get_buffer` in this cycle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_get_event_count(buffer: *mut c_void) -> u32 {
    // SAFETY: the same contract.
    unsafe { reader(buffer) }.map_or(0, MidiReader::len)
}

/// Describes event number `index`. Returns 0, `-EINVAL` (not a MIDI buffer, or `event` is null) or
/// `-ENOBUFS` (no such event). The message stays valid in this cycle. Thread: cycle.
///
/// # Safety
/// `event` is null or may be written, `buffer` is null or the result of `jack_port_get_buffer` in
/// this cycle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_event_get(
    event: *mut Event,
    buffer: *mut c_void,
    index: u32,
) -> c_int {
    // SAFETY: the same contract.
    let Some(reader) = unsafe { reader(buffer) }.filter(|_| !event.is_null()) else {
        return -libc::EINVAL;
    };
    let Some(found) = reader.event(index) else { return -libc::ENOBUFS };
    let message = found.data().as_ptr().cast_mut().cast();
    // SAFETY: the caller's promise.
    unsafe { store(event, Event { time: found.time(), size: found.len(), buffer: message }) };
    0
}

/// Removes all events and resets the count of lost ones. Thread: cycle.
///
/// # Safety
/// `buffer` is null or the result of `jack_port_get_buffer` in this cycle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_clear_buffer(buffer: *mut c_void) {
    // SAFETY: the same contract.
    if let Some(writer) = unsafe { writer(buffer) } {
        writer.clear();
    }
}

/// Like [`jack_midi_clear_buffer`]. Thread: cycle.
///
/// # Safety
/// See [`jack_midi_clear_buffer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_reset_buffer(buffer: *mut c_void) {
    // SAFETY: the same contract.
    unsafe { jack_midi_clear_buffer(buffer) };
}

/// Returns the size of the longest message that fits, in bytes; 0 if none does, or if this is not a
/// MIDI buffer. Thread: cycle.
///
/// # Safety
/// `buffer` is null or the result of `jack_port_get_buffer` in this cycle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_max_event_size(buffer: *mut c_void) -> usize {
    // SAFETY: the same contract.
    unsafe { writer(buffer) }.map_or(0, MidiWriter::max_event_bytes)
}

/// Adds an event and returns the address to which the program writes its message of `size` bytes.
/// Returns null if the time is before the last event's or past the cycle, if there is no room (the
/// event then counts as lost), or if this is not a MIDI buffer. Thread: cycle.
///
/// # Safety
/// `buffer` is null or the result of `jack_port_get_buffer` in this cycle for an output, used by
/// one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_event_reserve(
    buffer: *mut c_void,
    time: u32,
    size: usize,
) -> *mut u8 {
    // SAFETY: the same contract.
    let reserved = unsafe { writer(buffer) }.map(|writer| writer.reserve(time, size));
    match reserved {
        Some(Ok(words)) => words.as_ptr().cast_mut().cast(),
        _ => null_mut(),
    }
}

/// Adds an event. Returns 0, `-EINVAL` (the time is before the last event's or past the cycle, no
/// message, or not a MIDI buffer) or `-ENOBUFS` (no room; the event then counts as lost). Thread:
/// cycle.
///
/// # Safety
/// See [`jack_midi_event_reserve`]; `data` is null or may be read for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_event_write(
    buffer: *mut c_void,
    time: u32,
    data: *const u8,
    size: usize,
) -> c_int {
    // SAFETY: the same contract.
    let writer = unsafe { writer(buffer) }.filter(|_| !data.is_null() || size == 0);
    match writer.map(|writer| writer.reserve(time, size)) {
        None | Some(Err(MidiError::Time)) => -libc::EINVAL,
        Some(Err(MidiError::Full)) => -libc::ENOBUFS,
        Some(Ok(words)) => {
            let into: *mut u8 = words.as_ptr().cast_mut().cast();
            if size > 0 {
                // SAFETY: `data` is not null and has `size` bytes. So have the words, which this
                // process may write and no other writes; the message may lie in the same buffer.
                unsafe { data.copy_to(into, size) };
            }
            0
        }
    }
}

/// Returns the number of events that were dropped; 0 if this is not a MIDI buffer. Thread: cycle.
///
/// # Safety
/// `buffer` is null or the result of `jack_port_get_buffer` in this cycle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_midi_get_lost_event_count(buffer: *mut c_void) -> u32 {
    // SAFETY: the same contract.
    unsafe { reader(buffer) }.map_or(0, MidiReader::lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer as of a port.
    struct Buffer(Box<MidiWords>);

    impl Buffer {
        fn new() -> Self {
            let buffer = Self(Box::new(std::array::from_fn(|_| Default::default())));
            MidiWriter::begin(&buffer.0, 64);
            buffer
        }

        fn pointer(&self) -> *mut c_void {
            self.0.as_ptr().cast_mut().cast()
        }

        fn write(&self, time: u32, message: &[u8]) -> c_int {
            // SAFETY: a buffer and a slice of this test.
            unsafe { jack_midi_event_write(self.pointer(), time, message.as_ptr(), message.len()) }
        }

        fn get(&self, index: u32) -> Result<(u32, Vec<u8>), c_int> {
            let mut event = Event { time: 0, size: 0, buffer: null_mut() };
            // SAFETY: a variable and a buffer of this test; the answer is valid as long as the
            // buffer is unchanged.
            unsafe {
                match jack_midi_event_get(&raw mut event, self.pointer(), index) {
                    0 => Ok((
                        event.time,
                        std::slice::from_raw_parts(event.buffer, event.size).to_vec(),
                    )),
                    error => Err(error),
                }
            }
        }
    }

    #[test]
    fn written_and_reserved_events_are_read_back() {
        let buffer = Buffer::new();
        let system_exclusive: Vec<u8> = (0..=255).collect();
        assert_eq!(
            [
                buffer.write(0, &[0x90, 60, 1]),
                buffer.write(7, &system_exclusive),
                buffer.write(7, &[])
            ],
            [0; 3]
        );
        for size in [3, 5] {
            // SAFETY: a buffer of this test; what is reserved may be written.
            unsafe {
                let message = jack_midi_event_reserve(buffer.pointer(), 63, size);
                (0..size).for_each(|index| message.add(index).write(index as u8));
            }
        }
        // SAFETY: a buffer of this test.
        assert_eq!(unsafe { jack_midi_get_event_count(buffer.pointer()) }, 5);
        let expected = [
            (0, vec![0x90, 60, 1]),
            (7, system_exclusive),
            (7, vec![]),
            (63, vec![0, 1, 2]),
            (63, vec![0, 1, 2, 3, 4]),
        ];
        assert_eq!([0, 1, 2, 3, 4].map(|index| buffer.get(index).unwrap()), expected);
        assert_eq!(buffer.get(5), Err(-libc::ENOBUFS));
    }

    #[test]
    fn refusals_are_those_of_jack() {
        let buffer = Buffer::new();
        assert_eq!(buffer.write(64, &[0xf8]), -libc::EINVAL, "past the cycle");
        assert_eq!(buffer.write(9, &[0xf8]), 0);
        assert_eq!(buffer.write(8, &[0xf8]), -libc::EINVAL, "before the last event");
        assert_eq!(buffer.write(9, &vec![0; 40_000]), -libc::ENOBUFS);
        // SAFETY: a buffer of this test; no message is read where there is none.
        unsafe {
            assert_eq!(jack_midi_get_lost_event_count(buffer.pointer()), 1);
            assert!(jack_midi_event_reserve(buffer.pointer(), 9, usize::MAX).is_null());
            assert_eq!(jack_midi_get_lost_event_count(buffer.pointer()), 2);
            assert_eq!(
                jack_midi_event_write(buffer.pointer(), 9, std::ptr::null(), 1),
                -libc::EINVAL
            );
            assert_eq!(jack_midi_max_event_size(buffer.pointer()), 32_720);
            jack_midi_clear_buffer(buffer.pointer());
            assert_eq!(jack_midi_get_lost_event_count(buffer.pointer()), 0);
            assert_eq!(jack_midi_max_event_size(buffer.pointer()), 32_732);
        }
    }

    #[test]
    fn memory_that_is_not_a_midi_buffer_yields_errors() {
        let silence: Box<MidiWords> = Box::new(std::array::from_fn(|_| Default::default()));
        let silence: *mut c_void = silence.as_ptr().cast_mut().cast();
        for (what, buffer) in [
            ("null", null_mut()),
            ("audio", silence),
            ("amid a word", silence.wrapping_byte_add(1)),
        ] {
            let mut event = Event { time: 7, size: 7, buffer: null_mut() };
            // SAFETY: null, or memory of this test as large as a buffer.
            unsafe {
                assert_eq!(jack_midi_get_event_count(buffer), 0, "{what}");
                assert_eq!(jack_midi_event_get(&raw mut event, buffer, 0), -libc::EINVAL, "{what}");
                assert_eq!(jack_midi_max_event_size(buffer), 0, "{what}");
                assert!(jack_midi_event_reserve(buffer, 0, 1).is_null(), "{what}");
                assert_eq!(
                    jack_midi_event_write(buffer, 0, [1].as_ptr(), 1),
                    -libc::EINVAL,
                    "{what}"
                );
                assert_eq!(jack_midi_get_lost_event_count(buffer), 0, "{what}");
                jack_midi_clear_buffer(buffer);
                jack_midi_reset_buffer(buffer);
            }
            assert_eq!((event.time, event.size), (7, 7), "{what}: nothing is written");
        }
        // SAFETY: a buffer of this test, and no place for the answer.
        let answer = unsafe { jack_midi_event_get(null_mut(), Buffer::new().pointer(), 0) };
        assert_eq!(answer, -libc::EINVAL);
    }
}
