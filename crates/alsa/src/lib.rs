//! Sound cards: safe types over every part of libasound that the drivers use.
//!
//! A separate crate from `sys`, so that `libjack.so.0` never loads libasound into other programs.
//! [`Pcm`] is one direction of one device. Ordinary threads open, query and configure it; what the
//! cycle thread calls is marked, and neither allocates, locks nor blocks on `hw:` devices. Frames
//! are counted at the device's rate; times are `CLOCK_MONOTONIC` nanoseconds.

mod card_mixer;
mod cards;
mod clock_source;
mod configure;
mod controls;
mod definition;
mod error;
mod format;
mod handle;
mod hardware_monitoring;
mod holder;
mod messages;
mod parameters;
mod raw_midi;
mod transfer;
mod volume;

pub use card_mixer::{CardMixer, MixerStep, MixerVolume};
pub use cards::{Card, CardDevice, cards, first_forbidden, is_forbidden, locate, subdevice};
pub use clock_source::{ClockControl, ClockError, choose_clock, clock_controls};
pub use configure::{Access, CHANNELS_OF_HARDWARE, Limits, Refusal, Setup, SetupRequest};
pub use definition::sound_server;
pub use error::{Fault, OpenError};
pub use format::{format_name, parse_format};
pub use handle::{Direction, Pcm, Position, disable_library_locks};
pub use hardware_monitoring::{HardwareMonitoring, MonitoringError};
pub use holder::{Holder, holder};
pub use messages::discard_library_messages;
pub use raw_midi::{RawMidi, raw_midi};
pub use transfer::{ReadBlock, WriteBlock};
pub use volume::{Change, Volume, VolumeError, volume};
