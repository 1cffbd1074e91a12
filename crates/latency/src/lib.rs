//! Latency measured in recorded samples: how many of them lie between a sound and the same sound after it has gone
//! through a system.
//!
//! The method is that of "Audio Latency Measurements of Desktop Operating Systems" (MacMillan, Droettboom, Fujinaga,
//! 2001): a [`Signal`] goes directly onto the left channel of a [`Recording`] and through the system under test onto
//! the right one, and [`analyse`] counts the samples between the two. Only recorded samples enter the result.
//!
//! Nothing here touches a device, a file or a clock, and nothing is for a cycle: every call may allocate.
#![forbid(unsafe_code)]

mod analysis;
mod correlation;
mod delays;
mod dropout;
mod error;
mod interpolation;
mod onset;
mod recording;
mod signal;
mod trend;

pub use analysis::{Analysis, Continuity, analyse};
pub use delays::{Delay, Method};
pub use dropout::{Dropout, Fault};
pub use error::LatencyError;
pub use recording::{Recording, Side};
pub use signal::{Signal, maximum_length_sequence};
pub use trend::{Distribution, Drift, Step};
