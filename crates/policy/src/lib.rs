//! What is decided for programs of a desktop: where a stream plays, how loud, and what holds it
//! meanwhile. Tables in, decisions and their reasons out; no I/O.
//!
//! A decision rests on three tables: what a user has written ([`Rules`]), what was remembered
//! ([`Memory`]), and what the program asked for, in this order. Each carries its reason, which is
//! a sentence for users.
#![forbid(unsafe_code)]

mod defaults;
mod identity;
mod known;
mod memory;
mod rights;
mod roles;
mod rules;
mod start;
mod table;
#[cfg(test)]
mod tests;

pub use defaults::{DefaultReason, Defaults};
pub use identity::{Direction, Identity};
pub use known::{
    DeviceThere, KnownDevice, KnownDevices, MAX_DESCRIPTION_BYTES, NotKnown, Role, Routes,
};
pub use memory::{Damaged, DeviceEntry, Memory, StreamEntry, Volumes};
pub use rights::Rights;
pub use roles::{Cause, Interaction, Player, Playing, RoleModule, interactions};
pub use rules::{Complaint, ModuleLine, Rules};
pub use start::{Asked, Decided, DeviceReason, MuteReason, Start, VolumeReason, start};

/// PulseAudio's volume of 100 %.
pub const FULL_VOLUME: u32 = 0x10000;
/// The largest volume that is remembered, or that a rule can state: that of a gain of 16, the
/// largest that a stream can have.
pub const MAX_VOLUME: u32 = 165_140;
