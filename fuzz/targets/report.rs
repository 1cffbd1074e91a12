//! Any report of a plug-in's process.
#![no_main]

libfuzzer_sys::fuzz_target!(|packet: &[u8]| consort_fuzz::message::<proto::internal::HostReport>(
    packet
));
