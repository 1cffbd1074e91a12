//! A stream: frames on their way between one program and one device, without the graph's cycles.
//!
//! Segments with one writer each, which only that writer can ever map for writing:
//!
//! * the **ring** ([`RingHeader`] and samples): at the device's rate, addressed by absolute
//!   position. A playback ring is written by the program, a record ring by the server.
//! * the **wishes** ([`Wishes`], written by the program): what it wants, by number. They lie in the
//!   header of a playback ring, and on a [`WishPage`] of a stream that records.
//! * the **stream page** ([`StreamPage`], written by the server): which wishes took effect when,
//!   what is heard when, what was missed, how loud it was, which frames may be overwritten, when
//!   the device needs more, and what other programs have changed about the stream.
//!
//! Positions count frames since the stream began, also through the death of its server. The place
//! of a frame in the ring is its position modulo the ring's capacity, a power of two, so a position
//! is never an index that could lie outside.

mod numbered;
mod page;
mod ring;
mod schedule;
mod state;
mod timing;
mod wishes;

pub use numbered::{NumberedCursor, NumberedRing};
pub use page::{MISSES, Miss, PEAK_BLOCKS, StreamPage, peak_block_frames};
pub use ring::{
    LEAST_CAPACITY_FRAMES, MAX_CAPACITY_FRAMES, MAX_STREAM_CHANNELS, RingHeader, RingSamples,
    RingShape, WrittenFrames,
};
pub use schedule::{Due, Schedule};
pub use state::{STREAM_DEVICE_NAME_BYTES, StreamDeviceName, StreamState};
pub use timing::Timing;
pub use wishes::{Acknowledgement, WISHES, WishPage, WishReader, Wishes};
