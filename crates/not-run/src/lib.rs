//! Tests that cannot judge anything on this machine: they say so, instead of passing.

use std::fs::OpenOptions;
use std::io::Write;

/// Names the file in which `cargo xtask test` finds them.
const FILE: &str = "CONSORT_NOT_RUN";

/// Reports that the calling test, on its own thread, could not be run, or could not judge what it
/// saw. The test then returns; `cargo xtask test` lists it, and fails in CI.
pub fn not_run(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}", thread.name().unwrap_or("a test"));
    eprintln!("not run: {line}");
    let file = std::env::var_os(FILE)
        .and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok());
    if let Some(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
}
