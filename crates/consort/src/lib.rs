//! The command line: `consort COMMAND`, and the same program as `jackd` with jackd's own options.
//!
//! [`run`] is the whole program; [`command`] is its definition, from which help, man pages and
//! completions come. Every command is a file under `command/`: its arguments, what it asks of the
//! server, what it prints.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]

mod arguments;
mod as_jackd;
mod attach;
mod command;
mod companions;
mod entry;
mod exit;
mod front_end;
mod libraries;
mod own_program;
mod page;
mod plug_ins;
mod realtime_kit;
mod reservation;
mod server;

pub use arguments::command;
pub use entry::run;
