//! A server that dies is replaced by another, and its clients notice no more than missing cycles.
#![forbid(unsafe_code)]

mod calls;
mod endings;
mod others;
mod returning;
mod server_own;
mod stage;
