//! A program's end of its streams: a ring that it fills or empties, wishes, and times.
//!
//! A stream needs no cycles, no real-time thread and, while it runs, no socket: the program
//! computes from the device's published schedule when its ring has to be filled, and sleeps until
//! then. A [`StreamConnection`] opens streams; a [`StreamWriter`] and a [`StreamReader`] work on
//! mapped memory alone.
//!
//! A server that dies is followed by another, and streams go on there: the program looks for it as
//! an [`AwaitedServer`], and its streams [return](PlaybackStream::return_to).
//!
//! One thread at a time uses a stream.

mod awaited;
mod connection;
mod control;
mod converted;
mod devices;
mod opening;
mod planned;
mod playback;
mod reader;
mod record;
mod returning;
mod samples;
mod server;
mod server_watch;
#[cfg(test)]
mod tests;
mod wished;
mod writer;

pub use awaited::AwaitedServer;
pub use connection::{PlaybackOptions, RecordOptions, StreamConnection};
pub(crate) use connection::{set_volume, streams};
pub use control::{NoRoomForWish, StreamControl};
pub use converted::ConvertedReader;
pub use devices::StreamDevice;
pub(crate) use devices::device;
pub use opening::Beginning;
pub use planned::PlannedPlayback;
pub use playback::{PlaybackStream, WishError};
pub use reader::StreamReader;
pub use record::RecordStream;
pub use samples::{Samples, SamplesMut};
pub use server_watch::ServerWatch;
pub use writer::StreamWriter;

pub use proto::stream::{
    ChannelGains, ClientRole, DeviceState, DeviceVolume, Direction, FurtherDevice, Gain, NewDevice,
    NewHardware, NotAGain, StreamStatus, Volume, VolumeSource, VolumeSources, WakeUpRate, Watched,
};
/// Longest name of a stream and of its program, bytes.
pub const MAX_NAME_BYTES: usize = proto::limits::STREAM_NAME_BYTES;

pub use rt::shm::{Acknowledgement, Due, Miss, RingSamples, RingShape, Schedule, Timing};
pub use rt::stream::{Gains, Wish};
