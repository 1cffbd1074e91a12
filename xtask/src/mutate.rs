//! `cargo xtask mutate`: proof that the models of `crates/rt` see what they are there for.
//!
//! The crate is copied to a temporary directory. There one place after the other is broken, and the model
//! named beside it must fail. The tree itself is never changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::Instant;

mod models;
mod of_pages;
mod of_the_cycle;

use of_pages::OF_PAGES;
use of_the_cycle::OF_THE_CYCLE;

/// The copy's own workspace: the crate alone, without the optimizations that cost more than they save here.
const MANIFEST: &str = r#"
[profile.release]
lto = "off"
debug = false
incremental = true
"#;

/// One place of the crate, broken.
#[derive(Debug)]
struct Mutation {
    /// What is wrong then.
    name: &'static str,
    /// Under the crate's `src`.
    file: &'static str,
    /// Text that is there exactly once.
    old: &'static str,
    /// Text in its place.
    new: &'static str,
    /// The model that must fail.
    model: &'static str,
    /// Whether it is in the short selection.
    short: bool,
}

/// What became of a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The model failed, as it must.
    Caught,
    /// The model passed: it does not see what it is there for.
    Survived,
    /// It does not compile, or its text is not in the file exactly once.
    Invalid(&'static str),
}

/// Runs all mutations, those of the short selection (`--short`), or those whose name contains a text
/// (`--only TEXT`). Fails if one survives, or if the models fail unbroken.
///
/// # Errors
/// If the crate cannot be copied or cargo cannot be run.
pub(crate) fn run(arguments: &[String]) -> io::Result<ExitCode> {
    let Some(chosen) = choose(arguments) else {
        eprintln!("usage: cargo xtask mutate [--short | --only NAME]");
        return Ok(ExitCode::from(2));
    };
    if chosen.is_empty() {
        eprintln!("no mutation has such a name; there are:");
        all().for_each(|mutation| eprintln!("  {}", mutation.name));
        return Ok(ExitCode::from(2));
    }
    let copy = Copied::new()?;
    let begun = Instant::now();
    if !copy.models_pass(&chosen)? {
        return Ok(ExitCode::FAILURE);
    }
    println!("{:>4} s  unbroken: pass", begun.elapsed().as_secs());
    let mut survivors = 0;
    for mutation in &chosen {
        let begun = Instant::now();
        let outcome = copy.with(mutation)?;
        survivors += usize::from(outcome != Outcome::Caught);
        let verdict = match outcome {
            Outcome::Caught => "caught",
            Outcome::Survived => "SURVIVED",
            Outcome::Invalid(why) => why,
        };
        println!(
            "{:>4} s  {verdict:<10} {:<48} {}",
            begun.elapsed().as_secs(),
            mutation.name,
            mutation.model
        );
    }
    println!("{} of {} mutations were caught", chosen.len() - survivors, chosen.len());
    Ok(if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn all() -> impl Iterator<Item = &'static Mutation> {
    OF_THE_CYCLE.iter().chain(OF_PAGES)
}

fn choose(arguments: &[String]) -> Option<Vec<&'static Mutation>> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let chosen = |keep: &dyn Fn(&Mutation) -> bool| all().filter(|mutation| keep(mutation)).collect();
    match arguments[..] {
        [] => Some(chosen(&|_| true)),
        ["--short"] => Some(chosen(&|mutation| mutation.short)),
        ["--only", text] => Some(chosen(&|mutation| mutation.name.contains(text))),
        _ => None,
    }
}

/// A copy of the crate as a workspace of its own; removed when dropped.
struct Copied {
    root: PathBuf,
    target: PathBuf,
}

impl Copied {
    fn new() -> io::Result<Self> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
        let copy = Self {
            root: std::env::temp_dir().join(format!("consort-mutate-{}", std::process::id())),
            target: std::path::absolute(target)?.join("mutate"),
        };
        copy_tree(&workspace.join("crates/rt"), &copy.root.join("crates/rt"))?;
        fs::copy(workspace.join("Cargo.lock"), copy.root.join("Cargo.lock"))?;
        let manifest = fs::read_to_string(workspace.join("Cargo.toml"))?;
        fs::write(copy.root.join("Cargo.toml"), alone(&manifest) + MANIFEST)?;
        Ok(copy)
    }

    /// Runs the models whose path contains one of `models`.
    fn test(&self, models: &[&str]) -> io::Result<Output> {
        self.cargo(&["test", "--quiet"]).arg("--").args(models).args(["--test-threads", "2"]).output()
    }

    fn cargo(&self, verb: &[&str]) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(&self.root)
            .args(verb)
            .args(["--release", "--package", "consort-rt", "--test", "models"])
            .env("RUSTFLAGS", "--cfg loom")
            .env("RUST_BACKTRACE", "0")
            .env("CARGO_TARGET_DIR", &self.target)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .stdin(Stdio::null());
        cargo
    }

    fn models_pass(&self, chosen: &[&Mutation]) -> io::Result<bool> {
        let mut models: Vec<&str> = chosen.iter().map(|mutation| mutation.model).collect();
        models.sort_unstable();
        models.dedup();
        let output = self.test(&models)?;
        let text = String::from_utf8_lossy(&output.stdout);
        // A filter that matches nothing also succeeds, so every model must have been found.
        let ran =
            text.lines().find_map(|line| line.strip_prefix("running ")?.split(' ').next()?.parse().ok());
        if output.status.success() && ran == Some(models.len()) {
            return Ok(true);
        }
        eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
        eprintln!("the models must pass before they are tried: {} named, {ran:?} found", models.len());
        Ok(false)
    }

    /// Breaks one place, runs its model, and mends the place.
    fn with(&self, mutation: &Mutation) -> io::Result<Outcome> {
        let file = self.root.join("crates/rt/src").join(mutation.file);
        let whole = fs::read_to_string(&file)?;
        if whole.matches(mutation.old).count() != 1 {
            return Ok(Outcome::Invalid("NOT FOUND"));
        }
        fs::write(&file, whole.replacen(mutation.old, mutation.new, 1))?;
        let outcome = self.judge(mutation);
        fs::write(&file, whole)?;
        outcome
    }

    fn judge(&self, mutation: &Mutation) -> io::Result<Outcome> {
        if !self.cargo(&["test", "--quiet", "--no-run"]).output()?.status.success() {
            return Ok(Outcome::Invalid("NO BUILD"));
        }
        let passed = self.test(&[mutation.model])?.status.success();
        Ok(if passed { Outcome::Survived } else { Outcome::Caught })
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // A temporary directory that stays behind is no reason to hide the result.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The workspace's manifest with this crate as its only member, and without its profiles.
fn alone(manifest: &str) -> String {
    let mut kept = String::new();
    let mut skipping = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            skipping = line.starts_with("[profile.") || line == "[workspace.dependencies]";
        }
        if skipping {
            continue;
        }
        kept += if line.starts_with("members") { "members = [\"crates/rt\"]" } else { line };
        kept.push('\n');
    }
    kept
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &place)?;
        } else {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_s_text_is_in_its_file_exactly_once() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/rt/src");
        for mutation in all() {
            let whole = fs::read_to_string(source.join(mutation.file)).expect(mutation.file);
            assert_eq!(whole.matches(mutation.old).count(), 1, "{}", mutation.name);
        }
    }
}
