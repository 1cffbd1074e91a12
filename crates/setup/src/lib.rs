//! `consort setup`: what the server of a user is started with, and the user's right to real-time
//! priorities; and `--undo`, which brings back what was there.
//!
//! `plan` says what to change, `record` what it means to carry that out, to repeat it and to undo
//! it; both are pure. `files` and `account` read and write, `questions` asks.
#![forbid(unsafe_code)]

mod account;
mod command;
mod files;
mod part;
mod plan;
mod questions;
mod record;

pub use command::Setup;
