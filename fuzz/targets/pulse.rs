//! Any bytes of a program of PulseAudio's protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pulse::answer(bytes));
