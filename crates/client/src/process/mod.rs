//! A client's part in cycles: the process thread, and what other threads share with it.

mod inputs;
mod ports;
mod priority_boost;
mod runner;
mod scope;
mod tables;
mod thread;
mod ties;
mod transport;

pub(crate) use ports::{OwnSlabs, PortCell, PortTable};
pub(crate) use runner::{current_cycle, cycle_signal, cycle_wait, in_cycle};
pub use scope::CycleScope;
pub(crate) use tables::{Tables, TablesSender};
pub(crate) use thread::{Body, ProcessThread, Start, is_initializing};
pub(crate) use ties::Tie;
pub(crate) use transport::{NumberedCallback, TransportCallbacks};
pub use transport::{SyncCallback, TimebaseCallback};
