//! Any datagrams of a network in which sound is sent: packets, announcements, and what these
//! describe.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| device_bridge::take_datagrams(bytes));
