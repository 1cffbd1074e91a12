//! One bad client never stops the music: each test is a fault, and what other clients may lose by
//! it.
#![forbid(unsafe_code)]

mod changes;
mod deaths;
mod driver_time;
mod hangs;
mod hostile;
mod resources;
mod reused_ports;
mod scenario;
mod scribbling;
mod written_inputs;
