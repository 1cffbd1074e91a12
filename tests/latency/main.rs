//! `consort latency`: the figure that it prints is the true one, or there is none.
#![forbid(unsafe_code)]

mod desktop;
mod loops;
mod processes;
mod recordings;
mod reports;
mod systems;
