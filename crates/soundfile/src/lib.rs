//! Reading and writing sound files, off the real-time path: every call here may allocate and block
//! on a disk.
//!
//! [`Reader`] reads what libsndfile reads: WAV, RF64, FLAC, AIFF, Ogg and more. [`Writer`] writes
//! WAV with 32-bit floating point, which keeps every sample of the graph exactly, or in another
//! [`Encoding`], and continues as RF64 beyond 4 GiB. Samples are planar `f32`, full scale ±1.0, one
//! slice per channel.
//!
//! libsndfile is loaded when the first file is opened, so that programs without sound files do not
//! load it.
#![deny(unsafe_code)]

mod announced;
mod error;
#[expect(
    unsafe_code,
    reason = "calls to libsndfile, and its calls to us; every block states its invariant"
)]
mod library;
mod reader;
mod writer;

pub use error::SoundFileError;
pub use reader::Reader;
pub use writer::{Encoding, Writer};
