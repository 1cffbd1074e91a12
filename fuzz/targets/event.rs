//! Any event of the server.
#![no_main]

libfuzzer_sys::fuzz_target!(|packet: &[u8]| consort_fuzz::message::<proto::event::Event>(packet));
