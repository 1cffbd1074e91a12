//! The programs of tests: all built at once, and each run by itself.
//!
//! Cargo selects the features of dependencies by the packages that a command names: `cargo test` of
//! one package after the other would build most crates of the workspace several times.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command::cargo_command;

use super::failures::Failures;

/// The package of the process-level tests.
const PROCESSES: &str = "consort-tests";

/// A program of tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestProgram {
    /// The words with which cargo runs it alone: `-p consort-tests --test faults`.
    pub(super) words: String,
    /// The name of its suite, for process-level tests.
    pub(super) suite: Option<String>,
    pub(super) executable: PathBuf,
    /// The root of its package, where it is run.
    pub(super) directory: PathBuf,
}

/// Builds everything of the workspace that is tested or run by tests; returns the programs of tests
/// in the order of their words.
///
/// # Errors
/// If something does not compile.
pub(super) fn build() -> Result<Vec<TestProgram>> {
    let arguments =
        ["build", "--workspace", "--all-targets", "--message-format=json-render-diagnostics"];
    let mut cargo = cargo_command(&arguments, &[]);
    let output = cargo.stderr(Stdio::inherit()).output().context("cargo does not start")?;
    ensure!(output.status.success(), "the build failed: {}", output.status);
    named(&String::from_utf8_lossy(&output.stdout))
}

/// The programs that cargo's messages name, one JSON object per line.
fn named(messages: &str) -> Result<Vec<TestProgram>> {
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cargo's messages are not JSON")?;
        programs.extend(program(&message));
    }
    programs.sort_unstable();
    Ok(programs)
}

/// What a message of cargo's names: a program of tests, or `None`.
fn program(message: &Value) -> Option<TestProgram> {
    let (target, executable) = (&message["target"], message["executable"].as_str()?);
    // Benchmarks are built as programs of tests, but cargo does not run them as such either.
    if message["profile"]["test"] != true || target["test"] != true {
        return None;
    }
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let (place, identity) = message["package_id"].as_str()?.rsplit_once('#')?;
    // Without a name, it is that of the directory.
    let package = identity.split_once('@').map_or(place.rsplit('/').next()?, |(name, _)| name);
    let name = target["name"].as_str()?;
    let (which, suite) = match target["kind"][0].as_str()? {
        "test" => (format!("--test {name}"), (package == PROCESSES).then(|| name.to_owned())),
        "bin" => (format!("--bin {name}"), None),
        _ => ("--lib".to_owned(), None),
    };
    let words = format!("-p {package} {which}");
    Some(TestProgram { words, suite, executable: executable.into(), directory })
}

impl TestProgram {
    /// Runs it, with what it prints written to `shown`, and returns the tests that failed, each
    /// with the words of the program. What fails without a test's name, as when a signal ends it,
    /// is named as such.
    ///
    /// # Errors
    /// If it cannot be run, or nothing can be shown.
    pub(super) fn run(
        &self,
        arguments: &[String],
        environment: &[(&str, &str)],
        shown: &mut dyn Write,
    ) -> Result<Vec<String>> {
        writeln!(shown, "     Running {}", self.words)?;
        // One pipe, so that what a test prints comes before its verdict.
        let (reader, writer) = std::io::pipe()?;
        let mut command = Command::new(&self.executable);
        command.args(arguments).envs(environment.iter().copied()).current_dir(&self.directory);
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child =
            command.spawn().with_context(|| format!("{} does not start", self.words))?;
        drop(command);
        let lines = lines_of(reader);
        let mut failures = Failures::of(&self.words);
        let status = loop {
            match lines.recv_timeout(QUIET) {
                Ok(line) => {
                    shown.write_all(&line)?;
                    failures.take_line(&String::from_utf8_lossy(&line));
                }
                // What a test has left behind may keep the pipe open.
                Err(_) => {
                    if let Some(status) = child.try_wait()? {
                        break status;
                    }
                    std::thread::sleep(QUIET);
                }
            }
        };
        Ok(failures.end(&status))
    }
}

/// When there is no line for this long, it is checked whether the program has ended.
const QUIET: Duration = Duration::from_millis(200);

/// The lines that come out of a pipe, each with its end.
fn lines_of(pipe: PipeReader) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0)
            && sender.send(std::mem::take(&mut line)).is_ok()
        {}
    });
    receiver
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A message of cargo's, as it reports what it has built.
    fn message(package: &str, kind: &str, name: &str, is_test: bool) -> String {
        let (_, directory) = package.split_once("file://").expect("a package of a directory");
        let directory = directory.split('#').next().expect("a directory");
        let target = json!({ "kind": [kind], "name": name, "test": kind != "bench" });
        json!({
            "reason": "compiler-artifact",
            "package_id": package,
            "manifest_path": format!("{directory}/Cargo.toml"),
            "target": target,
            "profile": { "test": is_test },
            "executable": format!("/t/{name}-1"),
        })
        .to_string()
    }

    #[test]
    fn programs_of_tests_are_named_as_cargo_would_run_them() {
        let messages = [
            message("path+file:///c/tests#consort-tests@0.1.0", "test", "faults", true),
            message("path+file:///c/crates/consort#0.1.0", "bin", "consort", true),
            message("path+file:///c/crates/consort#0.1.0", "bin", "consort", false),
            message("path+file:///c/crates/rt#consort-rt@0.1.0", "lib", "consort_rt", true),
            message("path+file:///c/crates/rt#consort-rt@0.1.0", "bench", "cost", true),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let programs = named(&messages.join("\n")).expect("JSON");
        let words: Vec<&str> = programs.iter().map(|program| program.words.as_str()).collect();
        let expected =
            ["-p consort --bin consort", "-p consort-rt --lib", "-p consort-tests --test faults"];
        assert_eq!(words, expected);
        assert_eq!(programs[2].suite.as_deref(), Some("faults"));
        assert_eq!(programs[2].directory, Path::new("/c/tests"));
        assert_eq!((&programs[0].suite, &programs[1].suite), (&None, &None));
    }

    /// Runs a shell's commands as a program of tests; returns what failed, and what was shown.
    fn failures(script: &str) -> (Vec<String>, String) {
        let program = TestProgram {
            words: "-p here --test there".to_owned(),
            suite: None,
            executable: "/bin/sh".into(),
            directory: "/".into(),
        };
        let mut shown = Vec::new();
        let arguments = ["-c".to_owned(), script.to_owned()];
        let failed = program.run(&arguments, &[("WHICH", "three")], &mut shown).expect("it runs");
        (failed, String::from_utf8(shown).expect("text"))
    }

    #[test]
    fn tests_that_fail_are_named_with_their_program() {
        let (failed, shown) = failures("echo test one ... ok; echo test two ... FAILED; exit 101");
        assert_eq!(failed, ["-p here --test there: two"]);
        let expected = "     Running -p here --test there\ntest one ... ok\ntest two ... FAILED\n";
        assert_eq!(shown, expected);
        let (failed, _) = failures("echo test $WHICH ... FAILED >&2; exit 101");
        assert_eq!(failed, ["-p here --test there: three"]);
    }

    #[test]
    fn a_program_that_is_killed_is_a_failure() {
        let (failed, _) = failures("echo test one ... ok; kill -9 $$");
        assert_eq!(failed.len(), 1);
        assert!(failed[0].starts_with("-p here --test there: ended without "), "{failed:?}");
        assert_eq!(failures("echo test one ... ok").0, [""; 0]);
    }
}
