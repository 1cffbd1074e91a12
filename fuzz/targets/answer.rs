//! Any answer of a client to an event.
#![no_main]

libfuzzer_sys::fuzz_target!(|packet: &[u8]| consort_fuzz::message::<proto::event::Answer>(packet));
