//! The state of a server: saved, restored, kept, and given to clients that come back.
#![forbid(unsafe_code)]

mod files;
mod kept;
mod metronome;
mod tempo;
