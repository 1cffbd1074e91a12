//! The state of a server: saved, restored, remembered, and given back to clients that return.
#![forbid(unsafe_code)]

mod files;
mod kept;
mod metronome;
mod tempo;
mod volumes;
