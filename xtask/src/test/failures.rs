//! The failed tests, with what they said, from what a program of tests prints.

use std::process::ExitStatus;

/// Lines of a failed test's output that are kept: its last ones have the reason.
const LINES_KEPT: usize = 8;
/// Characters of a line that are kept.
const LINE_KEPT: usize = 600;

#[derive(Debug)]
pub(super) struct Failures<'a> {
    /// What the program is called.
    program: &'a str,
    failed: Vec<Failed>,
    /// The failed test whose output comes at the moment.
    speaking: Option<usize>,
}

#[derive(Debug)]
struct Failed {
    test: String,
    output: Vec<String>,
}

impl<'a> Failures<'a> {
    /// Those of a program, by the words that name it.
    pub(super) fn of(program: &'a str) -> Self {
        Self { program, failed: Vec::new(), speaking: None }
    }

    pub(super) fn take_line(&mut self, line: &str) {
        let line = line.trim_end();
        let named = |name: &str| self.failed.iter().position(|failed| failed.test == name);
        // A test's own output may come first in the line.
        if let Some(before) = line.strip_suffix(" ... FAILED")
            && let Some((_, name)) = before.rsplit_once("test ")
        {
            self.failed.push(Failed { test: name.to_owned(), output: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("---- ") {
            self.speaking = rest.strip_suffix(" stdout ----").and_then(named);
        } else if line == "stack backtrace:" || line == "failures:" {
            self.speaking = None;
        } else if let Some(speaking) = self.speaking
            && !line.is_empty()
        {
            let output = &mut self.failed[speaking].output;
            if output.len() == LINES_KEPT {
                output.remove(0);
            }
            output.push(line.chars().take(LINE_KEPT).collect());
        }
    }

    /// All of them, when the program has ended: the name, and a line each of what it said.
    pub(super) fn end(self, status: &ExitStatus) -> Vec<String> {
        let program = self.program;
        if self.failed.is_empty() && !status.success() {
            return vec![format!("{program}: ended without a failed test's name: {status}")];
        }
        let told = |failed: Failed| {
            let output = failed.output.iter().map(|line| format!("\n      {line}"));
            format!("{program}: {}{}", failed.test, output.collect::<String>())
        };
        self.failed.into_iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn failures(printed: &str, status: i32) -> Vec<String> {
        let mut failures = Failures::of("-p consort-tests --test faults");
        printed.lines().for_each(|line| failures.take_line(line));
        failures.end(&ExitStatus::from_raw(status))
    }

    #[test]
    fn each_failed_test_is_named_with_its_suite_and_its_last_words() {
        let printed = "test hangs::one ... ok\n\
            test hangs::another ... FAILED\n\
            a server's last words\ttest deaths::third ... FAILED\n\
            failures:\n\n\
            ---- hangs::another stdout ----\n\n\
            thread 'hangs::another' panicked at a.rs:1:2:\nnever happened\n\
            stack backtrace:\n   0: begin_unwind\n\n\n\
            failures:\n    hangs::another\n    deaths::third\n\
            test result: FAILED. 1 passed; 2 failed\n";
        let expected = [
            "-p consort-tests --test faults: hangs::another\
            \n      thread 'hangs::another' panicked at a.rs:1:2:\n      never happened",
            "-p consort-tests --test faults: deaths::third",
        ];
        assert_eq!(failures(printed, 101 << 8), expected);
    }

    #[test]
    fn a_suite_that_ends_without_a_name_is_a_failure() {
        let ended = failures("test one ... ok\n", 6);
        assert_eq!(ended.len(), 1);
        assert!(ended[0].contains("ended without") && ended[0].contains("SIGABRT"), "{ended:?}");
        assert_eq!(failures("test one ... ok\n", 0), [""; 0]);
    }
}
