//! Checks that need processors and no quiet: they run beside tests that mostly wait.

use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command::root;
use crate::install;

/// Tasks of this program, by their words. Each builds in a directory of its own, so that none waits
/// for another or for what tests build.
const TASKS: [&[&str]; 6] = [
    // Suites install and package what this has built.
    &["install", "--prefix", "target/beside/tree"],
    // Where cargo-deny is missing, most of its time is that of building it.
    &["deny"],
    &["targets"],
    &["sanitize"],
    &["mutate", "--short"],
    &["fuzz", "--short"],
];

/// A task that has ended.
pub(super) struct Ended {
    /// What runs it alone.
    pub(super) words: String,
    pub(super) took: Duration,
    pub(super) is_good: bool,
}

/// Starts the tasks, which run one after the other. The thread ends with the last of them, or when
/// one cannot be run.
pub(super) fn start() -> JoinHandle<Result<Vec<Ended>>> {
    thread::spawn(|| TASKS.iter().map(|words| run(words)).collect())
}

/// Runs a task, and prints what it has printed when it has ended.
fn run(words: &[&str]) -> Result<Ended> {
    let begun = Instant::now();
    // A build may replace this program's file meanwhile; the kernel keeps a name for the old one.
    let program = format!("/proc/{}/exe", std::process::id());
    // The kernel's idle policy: no test waits for a processor that such a task has.
    let output = Command::new("chrt")
        .args(["--idle", "0", &program])
        .args(words)
        .env(install::PROFILE, super::TRIAL)
        .current_dir(root())
        .output()
        .context("chrt does not start; it comes with util-linux")?;
    let words = format!("cargo xtask {}", words.join(" "));
    let (printed, errors) = (output.stdout, output.stderr);
    let [printed, errors] =
        [printed, errors].map(|text| String::from_utf8_lossy(&text).into_owned());
    print!("     Beside the tests: {words}\n{printed}{errors}");
    Ok(Ended { words, took: begun.elapsed(), is_good: output.status.success() })
}
