//! The server: it owns the graph, builds plans, drives cycles, and answers programs.
//!
//! The control thread (`control`) owns everything that changes, and publishes plans; the driver
//! thread (`cycle_thread`) runs them. Between the two cross plans and retired plans, streams there
//! and back, and the recording of cycles. Each further device of streams has a device thread
//! (`device_thread`).
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

pub mod config;
mod control;
mod counters;
mod latency;
mod model;
mod order;
mod placement;
mod plan;
mod platform;
pub mod policy;
mod priority_broker;
pub mod server;
mod signal_pages;
mod supervision;

mod average;
mod client_health;
mod client_slot;
mod client_threads;
mod closing;
mod cycle_thread;
mod device_cycles;
mod device_shared;
mod device_stream;
mod device_thread;
mod driver_budget;
mod driver_swap;
mod error;
mod mapped;
mod opening;
mod outbox;
mod programs;
mod quota;
mod realtime_limits;
mod registry;
mod resume;
mod slab;
mod state_writer;
mod stream_budget;
mod stream_part;
mod times;
mod transport;
mod wake_ups;

pub use config::{Config, SelfConnect, StateFile};
pub use device_stream::DeviceStream;
pub use error::{CompanionError, ServerError};
/// Exported for the fuzz target of the graph.
#[cfg(fuzzing)]
pub use model::{Change, Limits, Model};
pub use platform::{Platform, PluginLaunch, PluginLauncher};
pub use priority_broker::{BrokerConnection, PriorityBroker};
pub use server::run;
pub use stream_budget::{StreamBudget, StreamGrant, StreamLimits};
