//! The tests that could not be run, or could not judge what they saw (`harness::not_run`): each
//! gets a second attempt, alone, when all others have ended, and is reported if that is no better.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::programs::TestProgram;

/// Tests that need a machine of another kind: CI's is virtual, and may not move interrupts, or boot
/// another system in namespaces, and its Rust may have no standard library for 32 bits.
const MAY_NOT_RUN_IN_CI: [&str; 3] =
    ["interrupts::", "programs_play_through_the_packages_without_configuration", "narrow::"];

/// What a program of tests prints before its only test.
const ONE: &[u8] = b"running 1 test\n";

/// The file in which tests say so, a line each: the test's name and the reason.
#[derive(Debug)]
pub(super) struct NotRun<'a> {
    path: PathBuf,
    /// What has been said so far.
    tests: Vec<Test<'a>>,
}

#[derive(Debug)]
struct Test<'a> {
    program: &'a TestProgram,
    environment: Vec<(String, String)>,
    name: String,
    reason: String,
}

impl<'a> NotRun<'a> {
    /// Begins with an empty file.
    pub(super) fn in_file(path: PathBuf) -> Self {
        let _ = std::fs::remove_file(&path);
        Self { path, tests: Vec::new() }
    }

    /// Takes what the tests of a program have said, which has ended.
    pub(super) fn take_from(&mut self, program: &'a TestProgram, environment: &[(&str, &str)]) {
        let lines = std::fs::read_to_string(&self.path).unwrap_or_default();
        let _ = std::fs::remove_file(&self.path);
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment: Vec<_> = environment.iter().map(owned).collect();
        self.tests.extend(lines.lines().map(|line| {
            let (name, reason) = line.split_once(": ").unwrap_or((line, ""));
            Test {
                program,
                environment: environment.clone(),
                name: name.to_owned(),
                reason: reason.to_owned(),
            }
        }));
    }

    /// Runs each of them alone; returns those that failed now. What could be judged is forgotten.
    ///
    /// # Errors
    /// If a program cannot be run.
    pub(super) fn try_again(&mut self) -> Result<Vec<String>> {
        let mut failed = Vec::new();
        for test in std::mem::take(&mut self.tests) {
            if test.is_expected() {
                self.tests.push(test);
                continue;
            }
            println!("again, alone, because it was not run: {}", test.name);
            let words = ["--exact", &test.name, "--test-threads=1"].map(str::to_owned);
            let environment: Vec<(&str, &str)> =
                test.environment.iter().map(|(name, value)| (&**name, &**value)).collect();
            let mut shown = Vec::new();
            failed.extend(test.program.run(&words, &environment, &mut shown)?);
            print!("{}", String::from_utf8_lossy(&shown));
            self.take_from(test.program, &environment);
            // A reason given on a thread of another name: there is no such test.
            if !shown.windows(ONE.len()).any(|text| text == ONE) {
                self.tests.push(test);
            }
        }
        Ok(failed)
    }

    /// Lists them, and fails in CI, which can run all but a few.
    ///
    /// # Errors
    /// In CI, if there are others than those few.
    pub(super) fn report(&self) -> Result<()> {
        for test in &self.tests {
            println!("not run: {}: {}", test.name, test.reason);
        }
        let missing = self.tests.iter().filter(|test| !test.is_expected()).count();
        println!("{} tests were not run, {missing} of them unexpectedly", self.tests.len());
        ensure!(missing == 0 || std::env::var_os("CI").is_none(), "CI must run all tests");
        Ok(())
    }
}

impl Test<'_> {
    fn is_expected(&self) -> bool {
        MAY_NOT_RUN_IN_CI.iter().any(|name| self.name.starts_with(name))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    /// Has another process write a program: what this one has open for writing, a child of another
    /// test may have as well for a moment, and then nobody can run it.
    fn write_program(path: &Path, text: &str) {
        let mut install = Command::new("install");
        install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
        let mut install = install.spawn().expect("coreutils");
        let mut stdin = install.stdin.take().expect("piped");
        stdin.write_all(text.as_bytes()).expect("it reads");
        drop(stdin);
        assert!(install.wait().expect("a child").success());
    }

    /// A program of tests that does what a shell's commands say, and what is said of them.
    fn said_twice(name: &str, script: &str) -> (Vec<String>, String) {
        let directory = std::env::temp_dir().join(format!("not-run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let executable = directory.join("program");
        write_program(&executable, &format!("#!/bin/sh\n{script}"));
        let program = TestProgram {
            words: "-p here --test there".to_owned(),
            suite: None,
            executable,
            directory: directory.clone(),
        };
        let file = directory.join("said");
        let path = file.to_string_lossy().into_owned();
        let environment = [("SAID", &*path)];
        let mut not_run = NotRun::in_file(file);
        program.run(&[], &environment, &mut Vec::new()).expect("it runs");
        not_run.take_from(&program, &environment);
        let failed = not_run.try_again().expect("it runs");
        let left: Vec<&str> = not_run.tests.iter().map(|test| &*test.reason).collect();
        let left = left.join(", ");
        std::fs::remove_dir_all(&directory).expect("its owner");
        (failed, left)
    }

    #[test]
    fn a_test_that_can_judge_alone_is_run() {
        let script = r#"[ "$1" = --exact ] || { echo "one: noisy" > $SAID; exit; }
            echo "running 1 test"; echo "test $2 ... ok""#;
        assert_eq!(said_twice("better", script), (vec![], String::new()));
    }

    #[test]
    fn a_test_that_can_never_judge_is_not_run() {
        let script = r#"echo "running 1 test"; echo "one: noisy $1" > $SAID"#;
        assert_eq!(said_twice("never", script), (vec![], "noisy --exact".to_owned()));
    }

    #[test]
    fn a_test_that_fails_at_its_second_attempt_has_failed() {
        let script = r#"[ "$1" = --exact ] || { echo "one: noisy" > $SAID; exit; }
            echo "running 1 test"; echo "test $2 ... FAILED"; exit 101"#;
        let failed = vec!["-p here --test there: one".to_owned()];
        assert_eq!(said_twice("failed", script), (failed, String::new()));
    }

    #[test]
    fn a_reason_without_its_tests_name_is_kept() {
        let script = r#"[ "$1" = --exact ] || { echo "a thread: noisy" > $SAID; exit; }
            echo "running 0 tests""#;
        assert_eq!(said_twice("unnamed", script), (vec![], "noisy".to_owned()));
    }
}
