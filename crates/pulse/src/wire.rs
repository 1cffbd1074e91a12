//! Bytes of a connection: frames, the packets in them, and what they say.
//!
//! Everything that another process can write is checked here, once. The codec behind it
//! (`pulseaudio`) believes the lengths that a packet states; [`tagstruct::check`] comes before it.

mod descriptor;
mod extension;
mod frames;
mod manager;
mod memory;
mod object_message;
mod packet;
mod program_bytes;
pub(crate) mod ring_offer;
mod tagstruct;

pub(crate) use descriptor::{DESCRIPTOR_BYTES, Seek, nothing, samples};
pub(crate) use extension::{
    AboutDevices, AboutStreams, RememberedStream, WriteMode, reply as extension_reply,
    streams_changed, write_remembered,
};
pub(crate) use frames::{Frame, FrameError, FrameReader};
pub(crate) use manager::{AboutManager, ListedDevice, devices_changed, write_listed};
pub(crate) use memory::Segment;
pub(crate) use object_message::{ObjectMessage, object_reply};
pub(crate) use packet::{
    Packet, Request, Unreadable, error, event, read, reply, reply_head, request, success,
};
pub(crate) use program_bytes::ProgramBytes;
pub(crate) use tagstruct::MAX_VOLUME;
