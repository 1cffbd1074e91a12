//! One playback stream: bytes of a program on their way to a ring of the server.

mod attributes;
mod heard;
mod stream;
mod volume;

pub(crate) use attributes::{Attributes, Latency, Pace, Requested};
pub(crate) use stream::{Look, Notice, Playback, most_us};
pub(crate) use volume::{device_gains, device_volumes, gain_of, gains, volume_of};
