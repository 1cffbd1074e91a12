//! The state of a server: saved, restored, kept, and given to whoever comes back.
#![forbid(unsafe_code)]

mod files;
mod kept;
mod stage;
mod tempo;
