//! The long form: `cargo xtask test-devices`.

mod bus;
mod duplex;
mod further;
mod latency;
mod monitoring;
mod plays;
mod small;

pub(super) use bus::start_bus;
