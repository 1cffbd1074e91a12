//! The names of failed tests, from what cargo prints while it runs them.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::cargo_command;

/// Runs `cargo test`, with its output shown, and returns the tests that failed, each with the words
/// that name its suite to cargo. What fails without a test's name, such as a suite that a signal
/// ended or that did not build, is returned as cargo names it.
///
/// # Errors
/// If cargo cannot be run.
pub(super) fn cargo_test(words: &[&str], environment: &[(&str, &str)]) -> Result<Vec<String>> {
    // One pipe, so that a suite's name comes before its tests.
    let (reader, writer) = std::io::pipe()?;
    let mut command = cargo_command(words, environment);
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("cargo does not start")?;
    drop(command);
    let lines = lines_of(reader);
    let mut failures = Failures::default();
    let status = loop {
        match lines.recv_timeout(QUIET) {
            Ok(line) => {
                std::io::stdout().write_all(&line)?;
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
    Ok(failures.end(status.success()))
}

/// When there is no line for this long, it is checked whether cargo has ended.
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

#[derive(Debug, Default)]
struct Failures {
    /// Those of the suite that runs.
    of_suite: Vec<String>,
    all: Vec<String>,
}

impl Failures {
    fn take_line(&mut self, line: &str) {
        let line = line.trim_end();
        // A test's own output may come first in the line.
        if let Some(before) = line.strip_suffix(" ... FAILED")
            && let Some((_, name)) = before.rsplit_once("test ")
        {
            self.of_suite.push(name.to_owned());
        }
        let suite = line
            .strip_prefix("error: ")
            .and_then(|line| line.split_once("to rerun pass `"))
            .and_then(|(_, rest)| rest.strip_suffix('`'));
        if let Some(suite) = suite {
            self.end_suite(suite);
        }
    }

    fn end_suite(&mut self, suite: &str) {
        if self.of_suite.is_empty() {
            self.all.push(format!("{suite}: ended without a failed test's name"));
        }
        self.all.extend(self.of_suite.drain(..).map(|test| format!("{suite}: {test}")));
    }

    fn end(mut self, is_success: bool) -> Vec<String> {
        if !self.of_suite.is_empty() || (!is_success && self.all.is_empty()) {
            self.end_suite("cargo test");
        }
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(printed: &str, is_success: bool) -> Vec<String> {
        let mut failures = Failures::default();
        printed.lines().for_each(|line| failures.take_line(line));
        failures.end(is_success)
    }

    #[test]
    fn each_failed_test_is_named_with_its_suite() {
        let printed = "     Running faults/main.rs (target/debug/deps/faults-1)\n\
            test hangs::one ... ok\n\
            test hangs::another ... FAILED\n\
            a server's last words\ttest deaths::third ... FAILED\n\
            failures:\n    hangs::another\n\
            error: test failed, to rerun pass `-p consort-tests --test faults`\n\
            test reports::fourth ... FAILED\n\
            error: test failed, to rerun pass `-p consort-tests --test latency`\n\
            error: 2 targets failed:\n    `-p consort-tests --test faults`\n";
        let expected = [
            "-p consort-tests --test faults: hangs::another",
            "-p consort-tests --test faults: deaths::third",
            "-p consort-tests --test latency: reports::fourth",
        ];
        assert_eq!(failures(printed, false), expected);
    }

    #[test]
    fn a_run_that_cargo_refuses_is_a_failure() {
        let refused = cargo_test(&["test", "--no-such-option"], &[]).expect("cargo runs");
        assert_eq!(refused, ["cargo test: ended without a failed test's name"]);
        assert_eq!(cargo_test(&["--version"], &[]).expect("cargo runs"), [""; 0]);
    }

    #[test]
    fn a_suite_that_ends_without_a_name_is_a_failure() {
        let printed = "test one ... ok\n\
            error: test failed, to rerun pass `-p consort-tests --test web`\n\
            Caused by:\n  process didn't exit successfully (signal: 6, SIGABRT)\n";
        let expected = ["-p consort-tests --test web: ended without a failed test's name"];
        assert_eq!(failures(printed, false), expected);
        assert_eq!(failures("", false), ["cargo test: ended without a failed test's name"]);
        assert_eq!(failures("test one ... ok\n", true), [""; 0]);
    }
}
