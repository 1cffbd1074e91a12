//! The names of failed tests, from what a program of tests prints.

use std::process::ExitStatus;

#[derive(Debug)]
pub(super) struct Failures<'a> {
    /// What the program is called.
    program: &'a str,
    failed: Vec<String>,
}

impl<'a> Failures<'a> {
    /// Those of a program, by the words that name it.
    pub(super) fn of(program: &'a str) -> Self {
        Self { program, failed: Vec::new() }
    }

    pub(super) fn take_line(&mut self, line: &str) {
        // A test's own output may come first in the line.
        if let Some(before) = line.trim_end().strip_suffix(" ... FAILED")
            && let Some((_, name)) = before.rsplit_once("test ")
        {
            self.failed.push(format!("{}: {name}", self.program));
        }
    }

    /// All of them, when the program has ended.
    pub(super) fn end(mut self, status: &ExitStatus) -> Vec<String> {
        if self.failed.is_empty() && !status.success() {
            let program = self.program;
            self.failed.push(format!("{program}: ended without a failed test's name: {status}"));
        }
        self.failed
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
    fn each_failed_test_is_named_with_its_suite() {
        let printed = "test hangs::one ... ok\n\
            test hangs::another ... FAILED\n\
            a server's last words\ttest deaths::third ... FAILED\n\
            failures:\n    hangs::another\n\
            test result: FAILED. 1 passed; 2 failed\n";
        let expected = [
            "-p consort-tests --test faults: hangs::another",
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
