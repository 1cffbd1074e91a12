//! `libjackserver.so.0`: all of `libjack.so.0`, for plug-ins that are linked with it.
//!
//! A plug-in's process loads it, and its [`host`] runs the plug-in.

extern crate jack as _;

pub mod host;
pub mod messages;
