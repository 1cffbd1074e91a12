//! Devices beside the server's own as clients of its graph: further sound cards, each with a clock of its own, and MIDI
//! hardware.
//!
//! The graph never waits for any of them. A [`Card`] is resampled, by a loop that keeps it at its place on the graph's
//! clock; [`Midi`] has each message heard, or sent, a quantum later to the frame.
#![forbid(unsafe_code)]

mod bridge;
mod card;
mod midi;
mod resampler;
mod steering;
mod timeline;
mod told;

pub use bridge::{CaptureBridge, Course, Layout, PlaybackBridge};
pub use card::{Card, CardOptions, CardState};
pub use midi::{Midi, MidiHardware, MidiState};
pub use timeline::{CAPACITY_FRAMES, Timeline};

/// Property of a client: the device that it stands for, in words.
pub const DEVICE_KEY: &str = "urn:consort:device";
/// Property of such a client: how the device is, in words.
pub const STATE_KEY: &str = "urn:consort:device-state";

#[cfg(test)]
mod tests;
