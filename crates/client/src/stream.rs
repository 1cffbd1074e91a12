//! A program's end of its streams: a ring that it fills or empties, wishes, and times.
//!
//! A stream needs no cycles, no real-time thread and, while it runs, no socket: the program
//! computes from the device's published schedule when its ring has to be filled, and sleeps until
//! then. All of this works on mapped memory; how the segments travel is the caller's part.
//!
//! One thread at a time uses a stream.

mod control;
mod reader;
mod samples;
#[cfg(test)]
mod tests;
mod writer;

pub use control::{NoRoomForWish, StreamControl};
pub use reader::StreamReader;
pub use samples::{Samples, SamplesMut};
pub use writer::StreamWriter;

pub use rt::shm::{Acknowledgement, Due, Miss, RingShape, Schedule, Timing};
pub use rt::stream::{Gains, Wish};
