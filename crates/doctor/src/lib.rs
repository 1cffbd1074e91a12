//! `consort doctor`: what on this machine keeps sound from working in time, and what to type about
//! it.
//!
//! [`Facts::gather`] reads the machine; [`findings`] judges what it found, and touches nothing.
#![forbid(unsafe_code)]

mod bluetooth;
mod bus;
mod command;
mod facts;
mod findings;
mod flatpak;
mod listener;
mod loader;
mod output;
mod pipewire;
mod pulse;
#[cfg(test)]
mod tests;
mod wireplumber;

pub use bluetooth::HeadsetFacts;
pub use bus::BusName;
pub use command::Doctor;
pub use facts::{CardFacts, Facts, OtherServer, ServerFacts};
pub use findings::{Finding, Verdict, findings};
pub use flatpak::{FlatpakFacts, FlatpakSocket};
pub use loader::LibraryFacts;
pub use pipewire::PipeWireFacts;
pub use pulse::{NamedServer, PulseSocket};
pub use wireplumber::WirePlumber;
