//! Any answer of the server.
#![no_main]

use proto::request::{Numbered, Reply};

libfuzzer_sys::fuzz_target!(|packet: &[u8]| consort_fuzz::message::<Numbered<Reply>>(packet));
