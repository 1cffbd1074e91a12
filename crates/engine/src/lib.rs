//! The server: it owns the graph, builds plans, drives cycles, and answers programs.
//!
//! Two threads matter. The control thread (`control`) owns everything that changes and publishes plans;
//! the driver thread (`cycle_thread`) runs them. Between the two cross only a plan (in), and retired
//! plans and cycle records (out).
#![forbid(unsafe_code)]

pub mod config;
mod control;
pub mod driver;
mod latency;
mod model;
mod order;
mod placement;
mod plan;
pub mod policy;
pub mod realtime_kit;
pub mod server;
mod signal_pages;

mod autopsy;
mod average;
mod client_slot;
mod cycle_thread;
mod handed;
mod keeper;
mod lateness;
mod mapped;
mod opening;
mod outbox;
mod registry;
mod release;
mod resume;
mod rights;
mod rousers;
mod times;
mod transport;

pub use config::{Config, DEFAULT_GRACE_MS, Hosting, KeptState, SelfConnect};
pub use driver::DriverChoice;
/// The graph alone, for its fuzz target.
#[cfg(fuzzing)]
pub use model::{Change, Limits, Model};
pub use server::{ServerError, run};
