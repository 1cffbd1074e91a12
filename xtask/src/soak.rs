//! `cargo xtask soak`: a stream that must not lose a sample, next to clients that come, fault and
//! go at random.

use anyhow::{Context, Result, bail};

use crate::command::cargo_with;

const USAGE: &str = "usage: cargo xtask soak [--minutes N] [--seed S] [--quantum FRAMES] [--sync]
       cargo xtask soak --faults
       cargo xtask soak --joins";

/// Runs the long form of `tests/soak`, in release; fails if a sample was lost that the machine did
/// not take. With `--faults`: the long form of the tests of single faults;
/// with `--joins`: a thousand programs that come and go beside a player.
pub fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [word] if word == "--faults" => return every_fault(),
        [word] if word == "--joins" => return joins(),
        _ => {}
    }
    let mut words = arguments.iter().map(String::as_str);
    let mut environment = vec![("CONSORT_SOAK_SECONDS", "300".to_owned())];
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let word = words.next().context(USAGE)?;
            word.parse().with_context(|| format!("'{word}' is no number\n{USAGE}"))
        };
        environment.push(match word {
            "--minutes" => ("CONSORT_SOAK_SECONDS", (number()? * 60).to_string()),
            "--seed" => ("CONSORT_SOAK_SEED", number()?.to_string()),
            "--quantum" => ("CONSORT_SOAK_QUANTUM", number()?.to_string()),
            "--sync" => ("CONSORT_SOAK_SYNC", "1".to_owned()),
            _ => bail!("{USAGE}"),
        });
    }
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let test = [
        "test",
        "--quiet",
        "--release",
        "--package",
        "consort-tests",
        "--test",
        "soak",
        "--",
        "--nocapture",
    ];
    cargo_with(&test, &environment)
}

/// Tries each fault and each restart in all modes of a server.
fn every_fault() -> Result<()> {
    let suites = ["test", "--package", "consort-tests", "--test", "faults", "--test", "restart"];
    cargo_with(&[&suites[..], &["--", "--test-threads=2"]].concat(), &[("CONSORT_ALL_MODES", "1")])
}

/// Has a thousand programs come and go beside a player, in release.
fn joins() -> Result<()> {
    let suite = ["test", "--release", "--package", "consort-tests", "--test", "streams", "--"];
    cargo_with(&[&suite[..], &["--ignored", "--nocapture", "a_thousand_programs"]].concat(), &[])
}
