//! Sound cards: every call to the ALSA library (`alsa/pcm.h`), behind safe types.
//!
//! A crate of its own, beside `sys`, so that `libjack.so.0` never carries libasound into other people's programs.
//! [`Pcm`] is one direction of one device. It is opened, asked what it can do and configured by ordinary threads;
//! what the cycle thread calls says so, and neither allocates, locks nor blocks on `hw:` devices. Frames are
//! counted at the device's rate, dates are `CLOCK_MONOTONIC` nanoseconds.

mod cards;
mod configure;
mod controls;
mod error;
mod format;
mod handle;
mod holder;
mod monitoring;
mod parameters;
mod raw_midi;
mod transfer;
mod volume;

pub use cards::{Card, CardDevice, cards, first_forbidden, is_forbidden, locate, subdevice};
pub use configure::{Access, CHANNELS_OF_HARDWARE, Limits, Refusal, Setup, Wish};
pub use error::{Fault, OpenError};
pub use format::{format_name, parse_format};
pub use handle::{Direction, Pcm, Position, be_single_threaded_in_the_library};
pub use holder::{Holder, holder};
pub use monitoring::{Monitoring, MonitoringError};
pub use raw_midi::{RawMidi, raw_midi};
pub use transfer::{ReadBlock, WriteBlock};
pub use volume::{Change, Volume, VolumeError, volume};
