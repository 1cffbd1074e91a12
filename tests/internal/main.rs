//! Internal clients: plug-ins that the server runs, each in a process of its own, whatever
//! fails in them.
#![forbid(unsafe_code)]

mod beginning;
mod faults;
mod library;
mod plug_ins;
mod profiler;
