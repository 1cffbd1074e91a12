//! Any request.
#![no_main]

use proto::request::{Numbered, Request};

libfuzzer_sys::fuzz_target!(|packet: &[u8]| consort_fuzz::message::<Numbered<Request>>(packet));
