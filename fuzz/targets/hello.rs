//! Any first packet of a program.
#![no_main]

libfuzzer_sys::fuzz_target!(|packet: &[u8]| consort_fuzz::first_packet::<proto::hello::Hello>(
    packet
));
