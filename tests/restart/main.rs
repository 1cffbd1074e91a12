//! A server that dies is replaced by another, and its clients notice nothing but missing cycles.
#![forbid(unsafe_code)]

mod calls;
mod endings;
mod others;
mod returning;
mod scenario;
mod server_own;
