//! The protocols of the crate under every interleaving and every reordering that their orderings allow.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p consort-rt --test models --release`; without the flag there is
//! nothing here. `cargo xtask mutate` breaks the crate in one place after the other and demands that the
//! model named beside the mutation fails: what these models let through would be found there.
#![cfg(loom)]

mod awaiting;
mod futex;
mod handover;
mod orders;
mod recording;
mod signalling;
mod skipping;
mod snapshot;
mod stage;
mod stragglers;
mod switching;
mod transport_requests;

/// Runs `body` under every schedule with at most `preemptions` switches away from a thread that could go on.
///
/// `LOOM_MAX_PREEMPTIONS` overrides the bound, for a longer look.
fn explore(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.max_branches = 10_000;
    model.check(body);
}
