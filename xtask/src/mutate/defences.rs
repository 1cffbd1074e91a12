//! `cargo xtask mutate --defences`: proves that a test fails without the defence that it is there
//! for.
//!
//! The repository is copied to `target/mutate-defences`. There, a defence is taken away where a
//! comment `// MUTATION: name` marks it, and the test that [`table`] names with it must fail. The
//! copy keeps what it has built for the next run.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use super::edit::Edit;
use super::{Outcome, mutated_file, run_each, rust_files};
use crate::command::{root, tracked_files};

mod limit;
#[cfg(test)]
mod promises;
mod table;

use limit::status_within;

/// A defence that is taken away, and the test that must fail then.
#[derive(Debug)]
pub(super) struct Defence {
    /// Name at the marker: where it is, and what is missing.
    name: &'static str,
    /// What it does to the marked statement.
    edit: Edit,
    test: Test,
    /// Whether it is in the short selection.
    short: bool,
}

/// One test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Test {
    /// In the library of a package.
    Unit { package: &'static str, name: &'static str },
    /// In a suite of the process-level tests.
    Process { suite: &'static str, name: &'static str },
}

const fn unit(
    name: &'static str,
    edit: Edit,
    package: &'static str,
    test: &'static str,
) -> Defence {
    Defence { name, edit, test: Test::Unit { package, name: test }, short: false }
}

const fn process(
    name: &'static str,
    edit: Edit,
    suite: &'static str,
    test: &'static str,
) -> Defence {
    Defence { name, edit, test: Test::Process { suite, name: test }, short: false }
}

impl Defence {
    /// Puts the mutation into the short selection.
    const fn short(self) -> Self {
        Self { short: true, ..self }
    }
}

/// A test without a defence may wait for what never comes, several times.
const LONGEST_TEST: Duration = Duration::from_secs(600);
/// Where the harness reports what could not be judged.
const NOT_RUN: &str = "not-run.txt";
const LOG: &str = "log.txt";
/// What process-level tests start.
const PROGRAMS: [&str; 4] = ["consort", "consort-libjack", "consort-jackserver", "consort-jacknet"];

/// Takes all defences away, one after the other, those of the short selection (`--short`), or those
/// whose name contains one of some texts (`--only TEXT...`). Fails if a test does not notice, or
/// fails anyway.
pub(super) fn run(arguments: &[&str]) -> io::Result<ExitCode> {
    let chosen: Vec<&Defence> = match arguments {
        [] => table::all().collect(),
        ["--short"] => table::all().filter(|defence| defence.short).collect(),
        ["--only", texts @ ..] => {
            let is_meant = |name: &str| texts.iter().any(|text| name.contains(text));
            table::all().filter(|defence| is_meant(defence.name)).collect()
        }
        _ => Vec::new(),
    };
    if chosen.is_empty() {
        eprintln!(
            "usage: cargo xtask mutate --defences [--short | --only NAME...]; the names are:"
        );
        table::all().for_each(|defence| eprintln!("  {}", defence.name));
        return Ok(ExitCode::from(2));
    }
    let copy = TreeCopy::update()?;
    let tests: BTreeSet<Test> = chosen.iter().map(|defence| defence.test).collect();
    let mut failing = 0;
    for test in tests {
        let outcome = copy.judge(test)?;
        if outcome != Outcome::Survived {
            failing += 1;
            eprintln!("{} does not pass with all defences: {outcome:?}", test.shown());
            eprintln!("{}", fs::read_to_string(copy.directory.join(LOG))?);
        }
    }
    if failing > 0 {
        return Ok(ExitCode::FAILURE);
    }
    run_each(
        &chosen,
        |defence| (defence.name, defence.test.shown()),
        |defence| copy.without(defence),
    )
}

impl Test {
    fn name(self) -> &'static str {
        let (Self::Unit { name, .. } | Self::Process { name, .. }) = self;
        name
    }

    fn shown(self) -> String {
        match self {
            Self::Unit { package, name } => format!("{package} {name}"),
            Self::Process { suite, name } => format!("{suite} {name}"),
        }
    }

    /// What cargo builds and runs.
    fn target(self) -> Vec<&'static str> {
        match self {
            Self::Unit { package, .. } => vec!["--package", package, "--lib"],
            Self::Process { suite, .. } => vec!["--package", "consort-tests", "--test", suite],
        }
    }
}

/// A copy of the repository, and what was built there.
struct TreeCopy {
    directory: PathBuf,
}

impl TreeCopy {
    /// Makes the copy equal to the repository. Files that are equal keep their times, so that cargo
    /// builds only what has changed since the last run.
    fn update() -> io::Result<Self> {
        let copy = Self { directory: root().join("target/mutate-defences") };
        let files = tracked_files().map_err(io::Error::other)?;
        for file in &files {
            let (from, to) = (root().join(file), copy.tree().join(file));
            let content = fs::read(&from)?;
            if fs::read(&to).ok().as_ref() != Some(&content) {
                fs::create_dir_all(to.parent().unwrap_or(&to))?;
                fs::write(&to, content)?;
                fs::set_permissions(&to, from.metadata()?.permissions())?;
            }
        }
        let known: BTreeSet<PathBuf> = files.iter().map(|file| copy.tree().join(file)).collect();
        let stale = |file: &PathBuf| !known.contains(file);
        rust_files(&copy.tree())?.into_iter().filter(stale).try_for_each(fs::remove_file)?;
        Ok(copy)
    }

    fn tree(&self) -> PathBuf {
        self.directory.join("tree")
    }

    fn without(&self, defence: &Defence) -> io::Result<Outcome> {
        let sources = self.tree().join("crates");
        mutated_file(&sources, defence.name, defence.edit, || self.judge(defence.test))
    }

    fn judge(&self, test: Test) -> io::Result<Outcome> {
        if matches!(test, Test::Process { .. }) {
            let packages = PROGRAMS.map(|package| ["--package", package]).concat();
            if !self.cargo("build", &packages, LONGEST_TEST * 6)? {
                return Ok(Outcome::Invalid("NO BUILD"));
            }
        }
        if !self.cargo("test", &[&test.target()[..], &["--no-run"]].concat(), LONGEST_TEST * 6)? {
            return Ok(Outcome::Invalid("NO BUILD"));
        }
        let _ = fs::remove_file(self.directory.join(NOT_RUN));
        let words = [&test.target()[..], &["--", "--exact", test.name()]].concat();
        let has_passed = self.cargo("test", &words, LONGEST_TEST)?;
        if !fs::read_to_string(self.directory.join(LOG))?.contains("running 1 test\n") {
            return Ok(Outcome::Invalid("NO TEST"));
        }
        if self.directory.join(NOT_RUN).exists() {
            return Ok(Outcome::Invalid("NOT RUN"));
        }
        Ok(if has_passed { Outcome::Survived } else { Outcome::Caught })
    }

    /// Runs cargo in the copy; returns whether it succeeded in time.
    fn cargo(&self, verb: &str, words: &[&str], limit: Duration) -> io::Result<bool> {
        let log = File::create(self.directory.join(LOG))?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(self.tree())
            .args([verb, "--quiet"])
            .args(words)
            .env("CARGO_TARGET_DIR", self.directory.join("target"))
            .env("CONSORT_NOT_RUN", self.directory.join(NOT_RUN))
            .env("PROPTEST_RNG_SEED", "20261121")
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log);
        Ok(status_within(&mut cargo, limit)?.is_some_and(|status| status.success()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::expect_match;
    use super::*;

    /// What is marked outside of the real-time core, whose mutations models must notice.
    fn sources() -> Vec<String> {
        let crates = root().join("crates");
        let files = rust_files(&crates).expect("the sources").into_iter();
        let ours = files.filter(|file| !file.starts_with(crates.join("rt")));
        ours.map(|file| fs::read_to_string(file).expect("readable")).collect()
    }

    #[test]
    fn markers_and_defences_match_one_to_one() {
        let named: Vec<_> = table::all().map(|defence| (defence.name, defence.edit)).collect();
        expect_match(&sources(), &named);
    }

    #[test]
    fn every_named_test_exists() {
        let text = |directory: &str| -> String {
            let files = rust_files(&root().join(directory)).expect("sources");
            files.iter().map(|file| fs::read_to_string(file).expect("readable")).collect()
        };
        for Defence { name, test, .. } in table::all() {
            let directory = match test {
                Test::Unit { package, .. } => package.replace("consort-", "crates/"),
                Test::Process { suite, .. } => format!("tests/{suite}"),
            };
            let function = test.name().rsplit("::").next().unwrap_or_default();
            assert!(text(&directory).contains(&format!("fn {function}()")), "{name}: {function}");
        }
    }
}
