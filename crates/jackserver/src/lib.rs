//! `libjackserver.so.0`: everything in `libjack.so.0`, and the control of servers (`control.h`).
//!
//! A controlled server is a separate process, the `jackd` of the same installation, and ends with
//! the program. Plug-ins are linked with this library as well, so a plug-in's process loads it, and
//! its [`host`] runs the plug-in.
//!
//! The handles of control.h are addresses that are looked up and never dereferenced: null, foreign
//! and destroyed handles are answered with an error.

extern crate jack as _;

pub mod catalogue;
pub mod control;
pub mod host;
pub mod lists;
pub mod messages;
pub mod objects;
pub mod parameter;
pub mod parameters;
mod process;
pub mod signals;
mod slaves;
mod value;
mod words;
