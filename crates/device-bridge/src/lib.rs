//! Devices besides the server's own as clients of its graph: further sound cards, each with its own
//! clock, and MIDI hardware.
//!
//! The graph never waits for any of them. A [`Card`] is resampled, and a control loop keeps it
//! aligned with the graph's clock. [`Midi`] delays every message by exactly one quantum, in either
//! direction. [`Links`] play on one device of streams what is heard on another. [`Device`] is the
//! command `consort device`.
#![forbid(unsafe_code)]

mod bridge;
mod card;
mod command;
mod links;
mod midi;
mod notifications;
mod pipes;
mod resampler;
mod rtp;
mod simple;
mod steering;
mod timeline;
mod tunnels;
mod x11_bell;
mod zeroconf;

pub use bridge::{BridgeStats, CaptureBridge, Layout, PlaybackBridge};
pub use card::{Card, CardOptions, CardState};
pub use command::{Added, Device, DeviceOptions, DeviceProcesses, add, remove};
pub use links::{EchoOptions, LinkOptions, LinkSource, Links, OwnDevice, Processing};
pub use midi::{Midi, MidiHardware, MidiState};
pub use timeline::{CAPACITY_FRAMES, Timeline};

/// Takes any datagrams, as from the network, for the fuzzer.
#[cfg(fuzzing)]
pub fn take_datagrams(bytes: &[u8]) {
    rtp::take_any(bytes);
}

/// Property of a client: a description of the device that it stands for.
pub const DEVICE_KEY: &str = "urn:consort:device";
/// Property of a client without ports: which devices it links.
pub const LINK_KEY: &str = "urn:consort:link";
/// Property of either: the state of the device, for users.
pub const STATE_KEY: &str = "urn:consort:device-state";

#[cfg(test)]
mod tests;
