//! The latency tool: measures how many samples a sound takes through a system.
//!
//! The method is that of "Audio Latency Measurements of Desktop Operating Systems" (MacMillan,
//! Droettboom, Fujinaga, 2001): a [`Signal`] goes directly onto the left channel of a [`Recording`]
//! and through the system under test onto the right one, and [`analyse`] counts the samples between
//! the two. Only recorded samples enter the result.
//!
//! The analysis is public; [`Latency`] is the command `consort latency`, which drives the systems
//! under test. The libraries of other audio systems are loaded at run time, in the only module with
//! unsafe code.
#![deny(unsafe_code)]

mod analysis;
mod command;
#[expect(unsafe_code, reason = "foreign C interfaces, loaded at run time")]
mod library;

pub use analysis::{
    Analysis, Continuity, Delay, Distribution, Drift, Dropout, Fault, LatencyError, Method,
    Recording, Side, Signal, Step, analyse, maximum_length_sequence,
};
pub use command::Latency;
