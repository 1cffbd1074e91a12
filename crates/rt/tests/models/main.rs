//! Checks the protocols of the crate under every interleaving, and every reordering that their
//! orderings allow.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p consort-rt --test models --release`; without the
//! flag there are no tests. `cargo xtask mutate` breaks one statement of the crate after the other,
//! and demands that the model named with the mutation fails.
#![cfg(loom)]

mod assignments;
mod awaiting;
mod calling;
mod futex;
mod handover;
mod messages;
mod numbered;
mod recording;
mod signalling;
mod skipping;
mod snapshot;
mod stage;
mod stealing;
mod stragglers;
mod streams;
mod switching;
mod transport_requests;

/// Runs `body` under every schedule with at most `preemptions` switches away from a thread that
/// could continue.
///
/// `LOOM_MAX_PREEMPTIONS` overrides the bound, for a more thorough run.
fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.max_branches = 10_000;
    model.check(body);
}
