//! The web page of a server, and its metrics for Prometheus: an observer of the server, in a process of its own.
//!
//! Two threads. One *gathers*: it follows the recording, asks the server, does what browsers order, and publishes what
//! there is to be seen (`gather`). The other *answers*: it speaks HTTP with all browsers (`serve`, `answer`). Between
//! them cross the newest state, which a slow browser gets less often, and orders, of which only so many wait. Saving and
//! restoring, which may take long, have a thread of their own meanwhile, one at a time (`states`).
//! Who connects is checked in `serve` and `peer`, what it sends in `access` (who may ask) and `answer` (what).
#![forbid(unsafe_code)]

mod access;
mod answer;
mod assets;
mod gather;
mod graph;
mod metrics;
mod model;
mod peer;
mod serve;
mod states;
mod xruns;

pub use access::{Token, TokenError, is_allowed_at};
pub use serve::serve;
