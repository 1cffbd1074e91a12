//! The library itself: its version, its clock, and freeing the memory that it returns.

use std::ffi::{c_char, c_int, c_void};

/// The level of the JACK interface that the headers describe, followed by consort's version.
const VERSION: &[u8] = concat!("1.9.22 (consort ", env!("CARGO_PKG_VERSION"), ")\0").as_bytes();

/// Stores 0 in each number that is not null, like JACK2: programs tell versions apart by the text.
/// Thread: any.
///
/// # Safety
/// Each pointer is null or points to an int that the caller may write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_version(
    major: *mut c_int,
    minor: *mut c_int,
    micro: *mut c_int,
    protocol: *mut c_int,
) {
    for number in [major, minor, micro, protocol] {
        if !number.is_null() {
            // SAFETY: not null, so the caller has promised that it can be written.
            unsafe { number.write(0) };
        }
    }
}

/// Returns the version as text, valid forever. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_version_string() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// Returns the time on `CLOCK_MONOTONIC`, in µs. Needs no client. Thread: any.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_time() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec of this function's own. This clock always exists, so the call
    // cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // The clock counts from the start of the machine: neither part is ever negative.
    #[allow(clippy::useless_conversion, reason = "both are 32 bits wide on 32-bit platforms")]
    let (seconds, ns) =
        (u64::from(now.tv_sec.unsigned_abs()), u64::from(now.tv_nsec.unsigned_abs()));
    seconds * 1_000_000 + ns / 1_000
}

/// Frees memory that a function of this library has allocated for its caller with `malloc`.
///
/// # Safety
/// `memory` is null or came from such a function, and is not used after this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_free(memory: *mut c_void) {
    // SAFETY: the caller's promise, and that all such functions allocate with malloc.
    unsafe { libc::free(memory) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::time::Duration;

    fn clock_monotonic_us() -> u128 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a variable of this function.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) }, 0);
        Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap()).as_micros()
    }

    #[test]
    fn the_clock_is_clock_monotonic_in_microseconds() {
        for _ in 0..1000 {
            let times = [clock_monotonic_us(), jack_get_time().into(), clock_monotonic_us()];
            assert!(times.is_sorted(), "{times:?}");
        }
    }

    #[test]
    fn version_numbers_are_zero_and_any_of_them_may_be_left_out() {
        let (mut major, mut protocol) = (7, 7);
        // SAFETY: null or a variable of this test.
        unsafe {
            jack_get_version(
                &raw mut major,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                &raw mut protocol,
            )
        };
        assert_eq!((major, protocol), (0, 0));
    }

    #[test]
    fn the_version_text_names_the_interface_and_us() {
        // SAFETY: a constant that ends with 0.
        let text = unsafe { CStr::from_ptr(jack_get_version_string()) }.to_str().unwrap();
        assert!(
            text.starts_with("1.9.")
                && text.ends_with(concat!("(consort ", env!("CARGO_PKG_VERSION"), ")"))
        );
    }
}
