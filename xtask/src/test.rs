//! `cargo xtask test`: every check, in the order in which a failure is cheapest to find.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::command::{cargo, cargo_with};

/// Runs all checks; stops at the first that fails. `arguments` go to the tests (a name, say).
pub fn run(arguments: &[String]) -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    cargo(&["build", "--workspace", "--quiet"])?;
    // Process-level tests share two processors with the servers that they start.
    let mut test = vec!["test", "--workspace", "--no-fail-fast", "--", "--test-threads=2"];
    test.extend(arguments.iter().map(String::as_str));
    // What failed for one person fails for all: `cargo test` alone looks at new cases each time.
    cargo_with(&test, &[("PROPTEST_RNG_SEED", "20261121")])?;
    ensure!(
        crate::mutate::run(&["--short".into()])? == ExitCode::SUCCESS,
        "a model misses what it is there for"
    );
    crate::fuzz::run(&["--short".into()])?;
    cargo_with(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Runs the long form of the tests on sound cards: what [`run`] leaves out. One machine after the other.
pub fn devices() -> Result<()> {
    cargo(&["build", "--package", "consort", "--package", "consort-jack", "--quiet"])?;
    let package = ["test", "--package", "consort-tests", "--test", "devices"];
    cargo(&[&package[..], &["machine::", "--", "--include-ignored", "--test-threads=1"]].concat())
}
