//! The drivers, which start a graph's cycles: a sound card, a timer, or sound files.
//!
//! A driver knows its device and its clock and nothing of clients. The driver thread calls it in
//! every cycle, so the quantum, and whether the device or the graph sets the speed, may change from
//! one cycle to the next.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

mod alsa;
mod driver;
mod file;
mod monitored;
mod reservation;
mod timer;

pub use self::alsa::{
    AlsaDriver, RestCall, WhyAway, has_card, may_share, stream_cards, watch_cards,
};
pub use self::driver::{Capture, Channels, DeviceLatency, Driver, Pacing, Playback, Wake};
pub(crate) use self::driver::{silence, touched};
pub use self::file::{FileDriver, FileDriverError, FileOptions, is_same_file};
pub use self::monitored::Monitored;
pub use self::reservation::{CardClaim, CardReservation, ClaimNews, Reservation};
pub use self::timer::Timer;
pub use ::alsa::{disable_library_locks, discard_library_messages};
