//! `consort latency`: the number that it gives is the true one, or there is none.
#![forbid(unsafe_code)]

mod loops;
mod recordings;
