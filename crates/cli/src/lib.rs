//! Code shared by consort's commands in all crates: standard output, wrong command lines, error
//! messages, and a server that ends with the command that started it.
#![forbid(unsafe_code)]

mod errors;
mod favoured_thread;
pub mod output;
mod own_program;
mod server_name;
mod temporary_server;

use std::ops::RangeInclusive;

use clap::builder::RangedI64ValueParser;

pub use errors::{UsageError, error_chain, in_one_line};
pub use favoured_thread::{FAVOURED, ask_to_favour};
pub use own_program::{own_file, own_program};
pub use server_name::server_name;
pub use temporary_server::{TemporaryServer, end_with_stdin, end_with_stdin_within};

/// Returns the parser of an option whose value is a number in `range`.
#[must_use]
pub fn in_range(range: RangeInclusive<u32>) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*range.start())..=i64::from(*range.end()))
}
