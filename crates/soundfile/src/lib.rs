//! Reading and writing sound files, off the real-time path: every call here may allocate and block on a disk.
//!
//! [`Reader`] takes WAV and FLAC; [`Writer`] makes WAV with 32-bit floating point, which keeps every sample of
//! the graph as it is. Samples are planar `f32`, full scale ±1.0, one slice per channel.
#![forbid(unsafe_code)]

mod error;
mod reader;
mod riff;
mod writer;

pub use error::SoundFileError;
pub use reader::Reader;
pub use writer::Writer;
