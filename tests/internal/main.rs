//! Internal clients: plug-ins that the server runs, each in a process of its own, whatever goes
//! wrong with them.
#![forbid(unsafe_code)]

mod beginning;
mod faults;
mod library;
mod plug_ins;
mod profiler;
