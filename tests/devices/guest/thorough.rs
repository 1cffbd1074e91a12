//! The long form: `cargo xtask test-devices`.

mod duplex;
mod latency;
mod plays;
