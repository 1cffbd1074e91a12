//! Any state file: refused with a reason, or read into a state that stays the same when it is
//! written and read again.
#![no_main]

use state::State;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match State::parse(text) {
        Ok(read) => {
            let again =
                State::parse(&read.to_text()).unwrap_or_else(|error| panic!("{read:?}: {error}"));
            assert_eq!(again, read);
        }
        Err(refusal) => {
            assert!(!refusal.to_string().trim().is_empty(), "{text:?}: refused without a word")
        }
    }
});
