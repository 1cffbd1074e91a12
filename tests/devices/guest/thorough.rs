//! The long form: `cargo xtask test-devices`.

mod duplex;
mod further;
mod latency;
mod plays;
