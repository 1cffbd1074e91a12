//! Clients come, fault and go at random next to a stream that must not lose a sample.
//!
//! `cargo xtask soak --minutes N` runs the long form; the short one is a test like any other.
#![forbid(unsafe_code)]

mod actions;
mod run;

use std::time::Duration;

use run::Plan;

/// Environment variables with the options of `cargo xtask soak`.
fn wanted(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

const SHORT: Duration = Duration::from_secs(25);
/// How long the long form watches the stream without faults, as a fraction of the time with them.
const CONTROL_DIVISOR: u32 = 4;
/// The default.
const SEED: u64 = 20_261_121;

#[test]
fn a_stream_between_survivors_loses_nothing_in_a_soak() {
    let plan =
        Plan { seed: SEED, length: SHORT, quantum: 256, sync: false, control: Duration::ZERO };
    match wanted("CONSORT_SOAK_SECONDS") {
        None => run::execute(&plan),
        Some(seconds) => {
            let seed = wanted("CONSORT_SOAK_SEED").unwrap_or(SEED);
            let quantum =
                wanted("CONSORT_SOAK_QUANTUM").and_then(|frames| u32::try_from(frames).ok());
            let sync = wanted("CONSORT_SOAK_SYNC").is_some();
            let (length, quantum) = (Duration::from_secs(seconds), quantum.unwrap_or(plan.quantum));
            let lost =
                run::soak(&Plan { seed, length, quantum, sync, control: length / CONTROL_DIVISOR });
            assert_eq!(lost.servers, 0, "cycles lost that the machine did not take");
        }
    }
}
