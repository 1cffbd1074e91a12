//! Any answer to a first packet.
#![no_main]

libfuzzer_sys::fuzz_target!(|packet: &[u8]| consort_fuzz::first_packet::<proto::hello::Welcome>(
    packet
));
