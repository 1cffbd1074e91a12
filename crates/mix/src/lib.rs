//! What a device plays, as a function of its frames.
//!
//! A device's frame is the sum, in a fixed order, of what the graph played and of the device's
//! streams, each at its position and with its gain. What was rendered can be rendered again and
//! gives the same samples, so a device can be rendered seconds ahead and still be heard to change
//! at once: it takes back what the hardware has not read, and renders that again ([`DeviceLoop`]).
//!
//! Everything here is pure: time, hardware ([`Card`]) and the memory of streams ([`StreamMemory`])
//! come from the caller. Nothing on a device's thread allocates, locks or panics; what does
//! allocate says so.
#![forbid(unsafe_code)]

mod boxes;
mod card;
mod device_loop;
mod gains;
mod history;
mod lead;
mod memory;
mod planes;
mod recorder;
mod recorders;
mod routes;
mod stream;
#[cfg(test)]
mod tests;
mod timeline;
mod volume;

pub use card::{Card, CardCycle, CardPosition};
pub use device_loop::{DeviceLoop, DeviceShape, GraphCycles};
pub use gains::GainLine;
pub use history::FrameHistory;
pub use lead::Lead;
pub use memory::{NumberedWish, RecordMemory, StreamMemory};
pub use planes::Planes;
pub use recorder::{Recorder, Source};
pub use recorders::Recorders;
pub use routes::{ChannelSet, ROUTED_CHANNELS, RouteLevel, RouteLine, Routes};
pub use stream::Stream;
pub use timeline::{Part, Timeline};

/// Changes of a stream that are remembered at once. They are forgotten as the device plays on, and
/// a wish for which there is no room waits.
const SEGMENTS: usize = 16;

/// Frames that are rendered at once, at most.
pub const PIECE_FRAMES: usize = 1024;
/// Frames of the first piece: the sooner it is there, the less of the old rendering is heard.
const FIRST_PIECE_FRAMES: usize = 128;

/// The greatest magnitude of a stream's sample: 24 dB above full scale.
const MAX_LEVEL: f32 = 16.0;
