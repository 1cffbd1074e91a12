//! Uuids of clients and ports, as numbers and as decimal text. No call here waits, on any thread.
//!
//! The upper half says what a uuid names, 1 a port and 2 a client; the lower half is a number that
//! is never 0.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

pub use client::{client_uuid as of_client, port_uuid as of_port};

/// `jack_uuid_t`; 0 names nothing.
pub type Uuid = u64;

/// Size of the longest text in bytes, including its terminating 0 (`JACK_UUID_STRING_SIZE`).
pub const TEXT_BYTES: usize = 37;

/// The smallest valid uuid.
const LEAST: Uuid = 1 << 32;

/// Parses a decimal uuid. Returns `None` if it is out of range.
pub fn parse(text: &[u8]) -> Option<Uuid> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|&uuid| uuid >= LEAST)
}

/// Returns a client uuid that this process has not returned before. A server assigns its own.
/// Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_client_uuid_generate() -> Uuid {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // Relaxed: the numbers only have to differ.
    of_client(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
}

/// Returns the uuid of the port with this number. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_port_uuid_generate(port_id: u32) -> Uuid {
    of_port(port_id)
}

/// Returns the number that a port's uuid was made from. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_uuid_to_index(uuid: Uuid) -> u32 {
    (uuid as u32).wrapping_sub(1)
}

/// Returns -1, 0 or 1 as `a` is less than, equal to or greater than `b`. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_uuid_compare(a: Uuid, b: Uuid) -> c_int {
    a.cmp(&b) as c_int
}

/// Returns 1 for a uuid that names nothing, else 0. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_uuid_empty(uuid: Uuid) -> c_int {
    c_int::from(uuid == 0)
}

/// Stores `uuid` in `*destination`. Thread: any.
///
/// # Safety
/// `destination` is null or points to a uuid that the caller may write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_uuid_copy(destination: *mut Uuid, uuid: Uuid) {
    if !destination.is_null() {
        // SAFETY: not null, so the caller has promised that it can be written.
        unsafe { destination.write(uuid) };
    }
}

/// Clears `*uuid`, so that it names nothing. Thread: any.
///
/// # Safety
/// See [`jack_uuid_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_uuid_clear(uuid: *mut Uuid) {
    // SAFETY: the same contract.
    unsafe { jack_uuid_copy(uuid, 0) };
}

/// Parses a uuid. Returns 0, or -1 and leaves `*uuid` unchanged. Thread: any.
///
/// # Safety
/// `text` is null or a C string; `uuid` as for [`jack_uuid_copy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_uuid_parse(text: *const c_char, uuid: *mut Uuid) -> c_int {
    if text.is_null() {
        return -1;
    }
    // SAFETY: not null, so the caller has promised a C string.
    let Some(parsed) = parse(unsafe { CStr::from_ptr(text) }.to_bytes()) else { return -1 };
    // SAFETY: the same contract.
    unsafe { jack_uuid_copy(uuid, parsed) };
    0
}

/// Writes a uuid as text, with a terminating 0. Thread: any.
///
/// # Safety
/// `text` is null or has [`TEXT_BYTES`] bytes that the caller may write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_uuid_unparse(uuid: Uuid, text: *mut c_char) {
    if text.is_null() {
        return;
    }
    let mut bytes = [0; TEXT_BYTES];
    // 2^64 has 20 digits: they fit, and the rest of `bytes` ends the text.
    let _ = write!(bytes.as_mut_slice(), "{uuid}");
    // SAFETY: the caller has promised that many bytes.
    unsafe { text.cast::<[u8; TEXT_BYTES]>().write_unaligned(bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn uuids_are_the_numbers_that_jack_programs_know() {
        assert_eq!(of_client(1), 8_589_934_593);
        assert_eq!(of_port(0), 4_294_967_297);
        assert_eq!(jack_port_uuid_generate(7), 4_294_967_304);
        assert_eq!(jack_uuid_to_index(jack_port_uuid_generate(70_000)), 70_000);
    }

    #[test]
    fn generated_client_uuids_differ() {
        let (first, second) = (jack_client_uuid_generate(), jack_client_uuid_generate());
        assert_ne!(first, second);
        assert_eq!((first >> 32, second >> 32), (2, 2));
    }

    #[test]
    fn text_is_read_back_as_the_same_uuid() {
        for uuid in [of_port(0), of_client(3), u64::MAX] {
            let (mut text, mut read) = ([1; TEXT_BYTES], 0);
            // SAFETY: variables of this test, large enough.
            let answer = unsafe {
                jack_uuid_unparse(uuid, text.as_mut_ptr());
                jack_uuid_parse(text.as_ptr(), &raw mut read)
            };
            assert_eq!((answer, read), (0, uuid));
        }
    }

    #[test]
    fn an_invalid_uuid_text_is_refused() {
        for (what, text) in [
            ("empty", c""),
            ("a number below the first uuid", c"4294967295"),
            ("a number beyond 64 bits", c"18446744073709551616"),
            ("a sign", c"+4294967297"),
            ("a space", c" 4294967297"),
            ("something behind the number", c"4294967297x"),
            ("hexadecimal", c"0x100000001"),
        ] {
            let mut uuid = 42;
            // SAFETY: a constant text and a variable of this test.
            let answer = unsafe { jack_uuid_parse(text.as_ptr(), &raw mut uuid) };
            assert_eq!((answer, uuid), (-1, 42), "{what}");
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { jack_uuid_parse(ptr::null(), ptr::null_mut()) }, -1);
    }

    #[test]
    fn uuids_are_compared_copied_and_cleared() {
        assert_eq!(
            [jack_uuid_compare(1, 2), jack_uuid_compare(2, 2), jack_uuid_compare(u64::MAX, 2)],
            [-1, 0, 1]
        );
        let mut uuid = 0;
        // SAFETY: a variable of this test.
        unsafe { jack_uuid_copy(&raw mut uuid, of_port(1)) };
        assert_eq!((uuid, jack_uuid_empty(uuid)), (of_port(1), 0));
        // SAFETY: a variable of this test.
        unsafe { jack_uuid_clear(&raw mut uuid) };
        assert_eq!((uuid, jack_uuid_empty(uuid)), (0, 1));
    }
}
