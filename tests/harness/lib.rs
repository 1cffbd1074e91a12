//! Starts the real server and real programs in a private runtime directory, and ends all of them.
//!
//! Nothing here depends on how fast the machine is: a test waits for a state with [`eventually`],
//! whose bound is generous, and then asserts content, order and counts.
#![forbid(unsafe_code)]

mod built;
mod guard;
mod losses;
mod machine;
mod observed;
mod other_release;
mod probe;
mod program;
mod python;
mod server;
mod sound;
mod terminal;

pub use built::{
    binary, c_compiler, c_program, c_program_with, compile_c, copy_program, example,
    library_directory,
};
pub use guard::Guard;
pub use losses::{Heard, Judge, Loss, judged};
pub use machine::{MachineWatch, Stall, foreign_realtime};
pub use not_run::not_run;
pub use other_release::OtherRelease;
pub use probe::Counts;
pub use program::{Finished, Program, wake_ups};
pub use python::python;
pub use server::{Server, command_in};
pub use sound::{Sound, Stretch, noise, only_part, tone};
pub use terminal::Terminal;

use std::time::{Duration, Instant};

/// The modes of a server.
pub const MODES: [&[&str]; 4] = [
    &["--quantum", "64"],
    &["--quantum", "256"],
    &["--quantum", "64", "--sync"],
    &["--quantum", "256", "--sync"],
];

/// The modes that faults and restarts are tried in: one in async and one in sync mode, each of
/// another quantum; or all, with `CONSORT_ALL_MODES` in the environment.
pub fn modes() -> Vec<&'static [&'static str]> {
    if std::env::var_os("CONSORT_ALL_MODES").is_some() {
        MODES.to_vec()
    } else {
        vec![MODES[0], MODES[3]]
    }
}

/// How long a test waits for something that must come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Polls `found` until it returns a value, and returns that.
///
/// # Panics
/// After [`PATIENCE`]; `what` says what was missing.
pub fn eventually<T>(what: &str, found: impl FnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, found)
}

/// The same, for what may take longer than [`PATIENCE`].
///
/// # Panics
/// After `patience`; `what` says what was missing.
pub fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut found: impl FnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + patience;
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(Instant::now() < end, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Repeats an attempt that may fail on a busy machine, where cycles are lost.
///
/// # Panics
/// If three attempts fail; the message has the reason of each.
#[track_caller]
pub fn in_three_attempts<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut failures = Vec::new();
    for _ in 0..3 {
        match attempt() {
            Ok(value) => return value,
            Err(failure) => failures.push(failure),
        }
    }
    panic!("three attempts failed: {failures:?}");
}
