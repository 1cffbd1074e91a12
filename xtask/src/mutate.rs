//! `cargo xtask mutate`: proves that the loom models of `crates/rt` detect the faults that they
//! are there for. With `--defences`: the same for tests and defences ([`defences`]).
//!
//! The crate is copied to a temporary directory. A mutation changes one statement of the copy,
//! which a comment `// MUTATION: name` marks, and a model must then fail. The tree itself is never
//! changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::Instant;

mod cycle;
mod defences;
mod edit;
mod marker;
mod models;
mod pages;
mod streams;

use cycle::CYCLE;
use edit::Edit;
use pages::PAGES;
use streams::STREAMS;

/// Profile of the copy's workspace, without the optimizations that cost more time than they save
/// here.
const MANIFEST: &str = r#"
[profile.release]
lto = "off"
debug = false
incremental = true
"#;

/// A fault that a model must detect.
#[derive(Debug)]
struct Mutation {
    /// Name at the marker: the function or protocol, and the fault.
    name: &'static str,
    /// What it does to the marked statement.
    edit: Edit,
    /// Name of the model that must fail.
    model: &'static str,
    /// Whether it is in the short selection.
    short: bool,
}

const fn mutation(name: &'static str, edit: Edit, model: &'static str) -> Mutation {
    Mutation { name, edit, model, short: false }
}

impl Mutation {
    /// Puts the mutation into the short selection.
    const fn short(self) -> Self {
        Self { short: true, ..self }
    }
}

/// The result of a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The model failed, as it must.
    Caught,
    /// The model passed: it does not detect the fault.
    Survived,
    /// The mutated crate does not compile, or the mutation does not fit its marker.
    Invalid(&'static str),
}

/// Takes defences away (`--defences`), or runs all mutations, those of the short selection
/// (`--short`), or those whose name contains a text (`--only TEXT`). Fails if one survives, or if a
/// model fails without a mutation.
///
/// # Errors
/// If the crate cannot be copied or cargo cannot be run.
pub(crate) fn run(arguments: &[String]) -> io::Result<ExitCode> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["--defences", arguments @ ..] = &arguments[..] {
        return defences::run(arguments);
    }
    let Some(chosen) = choose(&arguments) else {
        eprintln!("usage: cargo xtask mutate [--defences] [--short | --only NAME]");
        return Ok(ExitCode::from(2));
    };
    if chosen.is_empty() {
        eprintln!("no mutation has such a name; there are:");
        all().for_each(|mutation| eprintln!("  {}", mutation.name));
        return Ok(ExitCode::from(2));
    }
    let copy = CrateCopy::new()?;
    let begun = Instant::now();
    if !copy.models_pass(&chosen)? {
        return Ok(ExitCode::FAILURE);
    }
    println!("{:>4} s  without mutations: pass", begun.elapsed().as_secs());
    run_each(
        &chosen,
        |mutation| (mutation.name, mutation.model.to_owned()),
        |mutation| copy.with(mutation),
    )
}

/// Judges each of `chosen`, and prints the verdict with its name and with what must fail.
fn run_each<T>(
    chosen: &[&T],
    names: impl Fn(&T) -> (&'static str, String),
    judge: impl Fn(&T) -> io::Result<Outcome>,
) -> io::Result<ExitCode> {
    let mut survivors = 0;
    for one in chosen {
        let begun = Instant::now();
        let outcome = judge(one)?;
        survivors += usize::from(outcome != Outcome::Caught);
        let verdict = match outcome {
            Outcome::Caught => "caught",
            Outcome::Survived => "SURVIVED",
            Outcome::Invalid(why) => why,
        };
        let (name, must_fail) = names(one);
        println!("{:>4} s  {verdict:<10} {name:<48} {must_fail}", begun.elapsed().as_secs());
    }
    println!("{} of {} mutations were caught", chosen.len() - survivors, chosen.len());
    Ok(if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn all() -> impl Iterator<Item = &'static Mutation> {
    CYCLE.iter().chain(PAGES).chain(STREAMS)
}

fn choose(arguments: &[&str]) -> Option<Vec<&'static Mutation>> {
    let chosen =
        |keep: &dyn Fn(&Mutation) -> bool| all().filter(|mutation| keep(mutation)).collect();
    match *arguments {
        [] => Some(chosen(&|_| true)),
        ["--short"] => Some(chosen(&|mutation| mutation.short)),
        ["--only", text] => Some(chosen(&|mutation| mutation.name.contains(text))),
        _ => None,
    }
}

/// A copy of the crate as its own workspace; removed on drop.
struct CrateCopy {
    root: PathBuf,
    target: PathBuf,
}

impl CrateCopy {
    fn new() -> io::Result<Self> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| workspace.join("target"), PathBuf::from);
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
        self.cargo(&["test", "--quiet"])
            .arg("--")
            .args(models)
            .args(["--test-threads", "2"])
            .output()
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
        let ran = text
            .lines()
            .find_map(|line| line.strip_prefix("running ")?.split(' ').next()?.parse().ok());
        if output.status.success() && ran == Some(models.len()) {
            return Ok(true);
        }
        eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
        eprintln!(
            "the models must pass without mutations first: {} named, {ran:?} found",
            models.len()
        );
        Ok(false)
    }

    /// Applies a mutation, runs its model, and restores the file.
    fn with(&self, mutation: &Mutation) -> io::Result<Outcome> {
        let sources = self.root.join("crates/rt/src");
        mutated_file(&sources, mutation.name, mutation.edit, || self.judge(mutation))
    }

    fn judge(&self, mutation: &Mutation) -> io::Result<Outcome> {
        if !self.cargo(&["test", "--quiet", "--no-run"]).output()?.status.success() {
            return Ok(Outcome::Invalid("NO BUILD"));
        }
        let passed = self.test(&[mutation.model])?.status.success();
        Ok(if passed { Outcome::Survived } else { Outcome::Caught })
    }
}

impl Drop for CrateCopy {
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

/// Judges the sources in `directory` while the statement with the marker `name` is changed.
fn mutated_file(
    directory: &Path,
    name: &str,
    edit: Edit,
    judge: impl FnOnce() -> io::Result<Outcome>,
) -> io::Result<Outcome> {
    for file in rust_files(directory)? {
        let source = fs::read_to_string(&file)?;
        let Some(mutated) = mutate(&source, name, edit) else { continue };
        fs::write(&file, mutated)?;
        let outcome = judge();
        fs::write(&file, source)?;
        return outcome;
    }
    Ok(Outcome::Invalid("NOT FOUND"))
}

/// Returns `source` with the mutation; `None` if there is no such marker, or the edit does not fit.
fn mutate(source: &str, name: &str, edit: Edit) -> Option<String> {
    let marked = marker::marked(source);
    let range = &marked.iter().find(|marked| marked.name == name)?.statement;
    let mutated = edit.apply(&source[range.clone()])?;
    Some([&source[..range.start], &mutated, &source[range.end..]].concat())
}

fn rust_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/rt/src");
        let files = rust_files(&source).expect("the crate's source");
        files.iter().map(|file| fs::read_to_string(file).expect("readable")).collect()
    }

    #[test]
    fn markers_and_mutations_match_one_to_one() {
        let named: Vec<_> = all().map(|mutation| (mutation.name, mutation.edit)).collect();
        expect_match(&sources(), &named);
    }

    /// Asserts that each marker in `sources` has an edit of its name, each edit a marker, and that
    /// each edit fits the marked statement.
    pub(super) fn expect_match(sources: &[String], named: &[(&str, Edit)]) {
        let mut marked: Vec<&str> = sources
            .iter()
            .flat_map(|source| marker::marked(source))
            .map(|marked| marked.name)
            .collect();
        let mut names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        marked.sort_unstable();
        names.sort_unstable();
        assert_eq!(marked, names);
        names.dedup();
        assert_eq!(marked, names, "each name is used once");
        for (name, edit) in named {
            let fits = sources.iter().filter_map(|source| mutate(source, name, *edit));
            assert_eq!(fits.count(), 1, "{name}");
        }
    }
}
