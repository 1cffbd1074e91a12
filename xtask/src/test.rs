//! `cargo xtask test`: every check, in the order in which a failure is cheapest to find.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::command::{cargo, cargo_with};

mod failures;

use failures::cargo_test;

/// Runs all checks; stops at the first that fails, but runs all tests before it names those that
/// failed. `arguments` go to the tests (a name, say).
pub fn run(arguments: &[String]) -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    crate::width::run()?;
    crate::links::run()?;
    crate::deny::run()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    cargo(&["build", "--workspace", "--quiet"])?;
    tests(arguments)?;
    ensure!(
        crate::mutate::run(&["--short".into()])? == ExitCode::SUCCESS,
        "a model misses what it is there for"
    );
    crate::sanitize::run()?;
    crate::fuzz::run(&["--short".into()])?;
    cargo_with(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Suites that wait for programs most of the time, and judge no cycle by the clock.
const PATIENT: [&str; 10] = [
    "control",
    "dbus",
    "effects",
    "instructions",
    "internal",
    "latency",
    "programs",
    "state",
    "sync",
    "web",
];

/// Process-level tests share two processors with the servers that they start.
fn tests(arguments: &[String]) -> Result<()> {
    let (patient, others): (Vec<String>, Vec<String>) =
        suites()?.into_iter().partition(|name| PATIENT.contains(&name.as_str()));
    let units = ["--workspace", "--exclude", "consort-tests"].map(str::to_owned).to_vec();
    let not_run = crate::command::root().join("target/not-run.txt");
    let _ = std::fs::remove_file(&not_run);
    let mut failed = Vec::new();
    for (what, threads) in [(units, 2), (chosen(&patient), 4), (chosen(&others), 2)] {
        let mut words = vec!["test", "--no-fail-fast"];
        words.extend(what.iter().map(String::as_str));
        let threads = format!("--test-threads={threads}");
        words.extend(["--", &threads]);
        words.extend(arguments.iter().map(String::as_str));
        // What failed for one person fails for all: `cargo test` alone looks at new cases each
        // time.
        let path = not_run.to_string_lossy();
        let environment = [("PROPTEST_RNG_SEED", "20261121"), ("CONSORT_NOT_RUN", &*path)];
        failed.extend(cargo_test(&words, &environment)?);
    }
    if arguments.is_empty() {
        failed.extend(near_the_ends_of_counters()?);
    }
    let not_run = report_not_run(&std::fs::read_to_string(&not_run).unwrap_or_default());
    // These are the last lines of all: of a long log, CI keeps the end.
    let names: String = failed.iter().map(|name| format!("\n  {name}")).collect();
    ensure!(failed.is_empty(), "{} tests failed:{names}", failed.len());
    not_run
}

/// Suites whose servers wrap their counters in a short run; all others do so too with the variable.
const AT_WRAPS: [&str; 3] = ["driver", "timing", "transport"];

/// Runs tests on servers whose cycle number and frame clock wrap after two seconds; returns those
/// that failed.
fn near_the_ends_of_counters() -> Result<Vec<String>> {
    let suites = chosen(&AT_WRAPS.map(str::to_owned));
    let words = ["test", "--no-fail-fast"].into_iter().chain(suites.iter().map(String::as_str));
    let words: Vec<&str> = words.chain(["--", "--test-threads=2"]).collect();
    let wrapping = cargo_test(&words, &[("CONSORT_COUNTERS_NEAR_END", "2")])?.into_iter();
    Ok(wrapping.map(|name| format!("with counters near their ends: {name}")).collect())
}

/// Tests that need a machine of another kind: CI's is virtual, and may not move interrupts, or boot
/// another system in namespaces, and its Rust may have no standard library for 32 bits.
const MAY_NOT_RUN_IN_CI: [&str; 3] =
    ["interrupts::", "programs_play_through_the_packages_without_configuration", "narrow::"];

/// Lists the tests that could not be run or could not judge what they saw (`harness::not_run`), and
/// fails in CI, which can run all but a few.
fn report_not_run(lines: &str) -> Result<()> {
    for line in lines.lines() {
        println!("not run: {line}");
    }
    let is_expected = |line: &&str| MAY_NOT_RUN_IN_CI.iter().any(|name| line.starts_with(name));
    let missing = lines.lines().filter(|line| !is_expected(line)).count();
    println!("{} tests were not run, {missing} of them unexpectedly", lines.lines().count());
    ensure!(missing == 0 || std::env::var_os("CI").is_none(), "CI must run all tests");
    Ok(())
}

/// The words that name suites of process-level tests, with what they have in common.
fn chosen(suites: &[String]) -> Vec<String> {
    let named = suites.iter().flat_map(|name| ["--test".to_owned(), name.clone()]);
    ["--package", "consort-tests", "--lib"].map(str::to_owned).into_iter().chain(named).collect()
}

/// The suites of process-level tests: a folder with a `main.rs` each.
fn suites() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in crate::command::root().join("tests").read_dir()? {
        let path = entry?.path();
        if path.join("main.rs").is_file() {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Runs the long form of the tests on sound cards: what [`run`] leaves out. One machine after the
/// other, and finally those that need the release build of the server.
pub fn devices() -> Result<()> {
    let build = ["build", "--package", "consort", "--package", "consort-libjack", "--quiet"];
    let package = ["test", "--package", "consort-tests", "--test", "devices"];
    let one_by_one = ["--include-ignored", "--test-threads=1"];
    cargo(&build)?;
    cargo(
        &[&package[..], &["machine::", "--"], &one_by_one, &["--skip", "machine::released"]]
            .concat(),
    )?;
    cargo(&[&build[..], &["--release"]].concat())?;
    cargo(&[&package[..], &["--release", "machine::released", "--"], &one_by_one].concat())
}
