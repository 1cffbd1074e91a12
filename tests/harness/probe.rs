//! The plain JACK client of `victims/probe.c`, and what it counts.

use std::process::Command;

use crate::{Program, Server, c_program, eventually};

/// What a checking probe counted since its first good cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Cycles that the probe ran.
    pub cycles: u64,
    /// Cycles with the right samples.
    pub good: u64,
    /// Cycles with silence.
    pub silent: u64,
    /// Cycles with anything else.
    pub wrong: u64,
    /// Cycles that the server began and the probe did not run.
    pub missed: u64,
}

impl Server {
    /// Starts a probe and waits until it is ready.
    pub fn probe(&self, arguments: &[&str]) -> Program {
        self.probe_with(arguments, |_| {})
    }

    /// The command of a probe.
    pub fn probe_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&c_program("victims/probe.c"));
        command.args(arguments);
        command
    }

    /// Starts a probe whose command `prepare` has changed, and waits until it is ready.
    pub fn probe_with(&self, arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Program {
        let mut command = self.probe_command(arguments);
        prepare(&mut command);
        ready(command).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, where something slows the server down.
    ///
    /// # Errors
    /// It has ended: the server has not answered in time.
    pub fn probe_in_time(&self, arguments: &[&str]) -> Result<Program, String> {
        ready(self.probe_command(arguments))
    }
}

/// Starts a probe and waits until it is ready.
///
/// # Errors
/// It has ended.
fn ready(command: Command) -> Result<Program, String> {
    let called = format!("{command:?}");
    let mut program = Program::start(command);
    eventually(&format!("{called} is ready"), || {
        let is_ready = program.stdout().contains("ready\n");
        (is_ready || !program.is_running()).then_some(())
    });
    if program.stdout().contains("ready\n") {
        return Ok(program);
    }
    Err(format!("{called}: {}", program.stderr()))
}

impl Counts {
    /// Ends a checking probe and reads its counts.
    ///
    /// # Panics
    /// If it did not end in order.
    #[track_caller]
    pub fn of(checker: Program) -> Self {
        Self::parse(&checker.terminate().expect_success().stdout)
    }

    /// Finds the counts in what a probe has printed.
    #[track_caller]
    pub(crate) fn parse(printed: &str) -> Self {
        let mut lines = printed.lines();
        let line = lines.find(|line| line.starts_with("cycles ")).expect("a line of counts");
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [cycles, good, silent, wrong, missed] = numbers[..] else {
            panic!("not counts: {line}")
        };
        Self { cycles, good, silent, wrong, missed }
    }
}
