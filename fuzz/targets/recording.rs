//! Any bytes as a recording: refused in words, or plotted, listed and traced.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| profile::read_recording(bytes));
