//! Checks that need processors and no quiet: they run beside tests that mostly wait.

use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command::root;
use crate::install;

/// Tasks of this program, by their words. Each builds in a directory of its own, so that none waits
/// for another or for what tests build.
pub(super) const TASKS: [&[&str]; 6] = [
    // The first: suites install and package what this has built.
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

/// Starts the tasks, which run one after the other. Each comes when it has ended; one that cannot
/// be run is the last.
pub(super) fn start() -> Receiver<Result<Ended>> {
    let (sender, ended) = channel();
    thread::spawn(move || {
        for words in TASKS {
            let task = run(words);
            let is_last = task.is_err();
            if sender.send(task).is_err() || is_last {
                return;
            }
        }
    });
    ended
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
