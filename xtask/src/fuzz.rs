//! `cargo xtask fuzz`: every decoder against inputs that no program would send.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::command::{host, root};

const USAGE: &str = "usage: cargo xtask fuzz [--short | --seconds N] [TARGET…]";

/// How long each target runs.
const SECONDS: u32 = 30;
/// The short form is part of every test run. Its seed is fixed, so that it finds the same for every
/// developer, as nearly as time allows.
const SHORT_SECONDS: u32 = 3;
const SHORT_SEED: u32 = 20_261_121;

/// What libFuzzer needs of the compiler: counters at every edge, and both sides of every
/// comparison. The address sanitizer is the only unstable one, for which the stable compiler is
/// unlocked.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Zsanitizer=address";

/// Builds the targets and runs each of them, or those that are named; fails at the first that
/// crashes, after all have run. The short form leaves out those that need most of the project
/// rebuilt.
///
/// # Errors
/// If a target crashes, does not end, or cannot be built.
pub fn run(arguments: &[String]) -> Result<()> {
    let fuzz = root().join("fuzz");
    let short = arguments.iter().any(|word| word == "--short");
    let all = targets(&fuzz, short)?;
    let Selection { seconds, seed, chosen } = Selection::read(arguments, &all)?;
    let host = host()?;
    let built = build(&fuzz, &host, short)?;
    let mut crashed = Vec::new();
    for target in &chosen {
        match fuzz_one(&fuzz, &built, target, seconds, seed)? {
            Ok(executions) => {
                println!("{target:<10} {executions:>12} executions in {seconds} s, clean")
            }
            Err(report) => {
                println!("{target:<10} CRASHED\n{report}");
                crashed.push(target.as_str());
            }
        }
    }
    ensure!(
        crashed.is_empty(),
        "found in {}: the inputs lie in fuzz/artifacts",
        crashed.join(", ")
    );
    Ok(())
}

struct Selection {
    seconds: u32,
    /// 0: another each time.
    seed: u32,
    chosen: Vec<String>,
}

impl Selection {
    fn read(arguments: &[String], all: &[String]) -> Result<Self> {
        let mut asked = Self { seconds: SECONDS, seed: 0, chosen: Vec::new() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--short" => (asked.seconds, asked.seed) = (SHORT_SECONDS, SHORT_SEED),
                "--seconds" => {
                    let seconds = words.next().context(USAGE)?;
                    // For libFuzzer 0 seconds are no limit.
                    asked.seconds =
                        seconds.parse().ok().filter(|seconds| *seconds > 0).context(USAGE)?;
                }
                target if all.iter().any(|name| name == target) => asked.chosen.push(target.into()),
                other => bail!("'{other}' is no target; there are: {}\n{USAGE}", all.join(", ")),
            }
        }
        if asked.chosen.is_empty() {
            asked.chosen = all.to_vec();
        }
        Ok(asked)
    }
}

/// The targets, as cargo knows them; `short`: those that need no feature.
fn targets(fuzz: &Path, short: bool) -> Result<Vec<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(fuzz);
    let output = cargo.output().context("cargo does not start")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let all = metadata["packages"][0]["targets"]
        .as_array()
        .context("the package 'fuzz' has no targets")?;
    let bins = all.iter().filter(|target| target["kind"][0] == "bin");
    let chosen = bins.filter(|target| !short || target["required-features"].is_null());
    Ok(chosen.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect())
}

/// Gives the directory with the targets' programs.
fn build(fuzz: &Path, host: &str, short: bool) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let target = std::path::absolute(target)?.join("fuzz");
    // What writes the seeds need only be right: it does not link with what libFuzzer counts by. All
    // targets are checked, also those that a short run leaves out.
    let features = short.then_some("--no-default-features");
    for (verb, features) in
        [(&["build", "--bins"][..], features), (&["check", "--bins", "--examples"], None)]
    {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(verb)
            .args(["--release", "--target", host])
            .args(features)
            .current_dir(fuzz)
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", RUSTFLAGS)
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        crate::succeed(&mut cargo)?;
    }
    Ok(target.join(host).join("release"))
}

/// The number of executions, or what the target said when it crashed.
fn fuzz_one(
    fuzz: &Path,
    built: &Path,
    target: &str,
    seconds: u32,
    seed: u32,
) -> Result<Result<u64, String>> {
    // What a run learns stays for the next one; the seeds are only read.
    let (corpus, artifacts) =
        (fuzz.join("corpus").join(target), fuzz.join("artifacts").join(target));
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(built.join(target));
    command
        .args(["-print_final_stats=1", "-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-seed={seed}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(corpus)
        .args(Some(fuzz.join("seeds").join(target)).filter(|seeds| seeds.is_dir()))
        .stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot run the target {target}"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let executions =
        text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    match executions.and_then(|number| number.trim().parse().ok()) {
        Some(executions) if output.status.success() => Ok(Ok(executions)),
        _ => Ok(Err(tail(&text))),
    }
}

/// The last lines, where the crash is.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
