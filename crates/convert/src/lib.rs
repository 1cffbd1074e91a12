//! Conversion between a program's own samples and those of a stream.
//!
//! A program has interleaved bytes in one of many formats, with its own channels and rate; a stream
//! of the server is planar `f32` with the channels and the rate of its device. What lies between is
//! here, and runs in the program's process, on any of its threads. Nothing allocates, locks or
//! panics once it is constructed, and the time that a call takes is proportional to the frames that
//! it takes and makes.
#![forbid(unsafe_code)]

mod channels;
mod converter;
mod format;
mod options;
mod planes;
mod resampler;

pub use channels::{ChannelMap, ChannelPosition, InvalidMap, Matrix, Mixing, Standard};
pub use converter::{PlaybackConverter, ProgramFormat, RecordConverter, StreamFormat};
pub use format::{Decoder, Encoder, SampleFormat, UnknownFormat};
pub use options::{ConvertError, Filter, MAX_RATE_HZ, Options};

/// Most channels of a program or a stream, as in PulseAudio's protocol.
pub const MAX_CHANNELS: usize = 32;

/// Most frames that are passed on at once.
pub const PIECE_FRAMES: usize = 1024;
