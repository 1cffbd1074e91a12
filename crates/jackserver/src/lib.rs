//! `libjackserver.so.0`: all of `libjack.so.0`, and what controls a server (`control.h`).
//!
//! A server that is controlled is a process of its own, the `jackd` of the same installation, and ends with the program.
//! Plug-ins are linked with this library as well, so a plug-in's process loads it, and its [`host`] runs the plug-in.
//!
//! What control.h hands out are addresses that are looked up and never followed: null, foreign and destroyed ones are
//! answered with an error.

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
