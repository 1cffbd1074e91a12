//! A server's web page, and its metrics for Prometheus: an observer of the server in a separate
//! process.
//!
//! There are two threads. One gathers (`gather`): it follows the recording, sends requests to the
//! server, executes browsers' commands, and publishes the state to be shown. The other answers
//! (`serve`, `answer`): it speaks HTTP with all browsers. Between them pass the newest state, which
//! a slow browser gets less often, and commands, whose queue is bounded. Saving and restoring may
//! take long and run on a thread of their own, one at a time (`states`). `serve` and `peer` check
//! connections, `access` checks permission for a request, `answer` checks the request itself,
//! `served` whether the page may act at the server; `commands` has the server carry out what
//! browsers ask for.
#![forbid(unsafe_code)]

mod access;
mod answer;
mod assets;
mod commands;
mod gather;
mod graph;
mod metrics;
mod model;
mod peer;
mod serve;
mod served;
mod states;
mod streams;
mod xruns;

pub use access::{Token, TokenError, is_allowed_at};
pub use serve::serve;
pub use served::{NeedsToken, check_server};
