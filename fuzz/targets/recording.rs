//! Any bytes as a recording: refused with a reason, or plotted, listed and traced.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| profile::read_recording(bytes));
