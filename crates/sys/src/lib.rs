//! Every system call that the project makes: one safe type per kernel resource, closed on drop.
//!
//! Nothing here makes decisions. Deadlines are absolute `CLOCK_MONOTONIC` nanoseconds everywhere,
//! `None` is "forever", and a call that a signal interrupts continues by itself. Descriptors are
//! close-on-exec.

pub mod alarm;
pub mod buffers;
pub mod clock;
pub mod cycle_guard;
pub mod directory;
pub mod disposal;
pub mod fifo;
pub mod fork;
#[cfg(test)]
mod forked;
pub mod futex;
pub mod group;
pub mod helper;
pub mod interrupts;
pub mod library;
pub mod library_entry;
pub mod lock;
pub mod log;
pub mod machine_sleep;
pub mod memory;
pub mod midi;
pub mod poll;
pub mod process;
pub mod runtime_directory;
pub mod signals;
pub mod socket;
pub mod thread;
pub mod topology;
pub mod wake_latency;
