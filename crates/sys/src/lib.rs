//! Every system call that the project makes: one safe type per kernel resource, closed on drop.
//!
//! Nothing here decides anything. Deadlines are absolute `CLOCK_MONOTONIC` nanoseconds everywhere, `None` is
//! "for ever", and a call that a signal interrupts goes on by itself. Descriptors are close-on-exec.

pub mod alarm;
pub mod buffers;
pub mod clock;
pub mod cycle_guard;
pub mod fork;
#[cfg(test)]
mod forked;
pub mod futex;
pub mod group;
pub mod hosting;
pub mod interrupts;
pub mod jack_library;
pub mod library;
pub mod lock;
pub mod memory;
pub mod midi;
pub mod poll;
pub mod portaudio_library;
pub mod process;
pub mod pulse_library;
pub mod runtime_directory;
pub mod sdl_library;
pub mod signals;
pub mod socket;
pub mod thread;
pub mod topology;
pub mod wake_latency;
pub mod write_faults;
