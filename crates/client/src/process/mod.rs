//! A client's part in cycles: the process thread, and what other threads share with it.

mod inputs;
mod ports;
mod runner;
mod scope;
mod standing;
mod tables;
mod thread;
mod ties;
mod transport;

pub(crate) use ports::{OwnSlabs, PortCell, PortTable};
pub(crate) use runner::{current_cycle, cycle_signal, cycle_wait, in_cycle};
pub use scope::CycleScope;
pub(crate) use tables::{Tables, TablesSender};
pub(crate) use thread::{Body, ProcessThread, Start, is_beginning};
pub(crate) use ties::Tie;
pub(crate) use transport::{Numbered, TransportCallbacks};
pub use transport::{SyncCallback, TimebaseCallback};
