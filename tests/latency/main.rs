//! `consort latency`: the number that it gives is the true one, or there is none.
#![forbid(unsafe_code)]

mod desktop;
mod loops;
mod processes;
mod recordings;
mod reports;
mod systems;
