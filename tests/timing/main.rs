//! What the server reports about its cycles: recordings, plots, verdicts, and the programs that
//! show them.
#![forbid(unsafe_code)]

mod interrupts;
mod profiler_client;
mod recordings;
mod terminal;
mod verdicts;
