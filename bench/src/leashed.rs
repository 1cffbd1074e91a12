//! A process that is kept no longer than the benchmark lives.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::child::LineChild;
use crate::programs::Programs;

/// A process behind `clients/leash.c`, which ends it with this value, and also when the benchmark
/// is killed.
pub struct Leashed {
    /// The process itself, not the leash.
    pub pid: u32,
    name: String,
    log: PathBuf,
    leash: LineChild,
}

impl Leashed {
    /// Starts the words of `line`, whose output goes to the file `log`. `set` gives it its
    /// environment.
    pub fn start(
        programs: &Programs,
        name: &str,
        log: &Path,
        line: &[String],
        set: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        // Only the output of this start matters if it fails.
        let _ = std::fs::remove_file(log);
        let mut command = Command::new(&programs.leash);
        command.arg(log).args(line);
        set(&mut command);
        let leash = LineChild::spawn(format!("the leash of {name}"), &mut command)?;
        let pid = *leash.numbers("pid")?.first().context("the leash names no process")?;
        Ok(Self { pid: u32::try_from(pid)?, name: name.into(), log: log.into(), leash })
    }

    /// What it has printed.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it by SIGTERM. Returns an error if it did not end by itself or by this signal.
    pub fn stop(&mut self) -> Result<()> {
        self.leash.close_input();
        let status = self.leash.numbers("ended")?;
        // Wait statuses: exit code 0; SIGTERM; and what a shell makes of SIGTERM.
        const ENDED: [u64; 3] = [0, 15, (128 + 15) << 8];
        let is_in_order = status.first().is_some_and(|status| ENDED.contains(status));
        ensure!(is_in_order, "{} ended with wait status {status:?}", self.name);
        Ok(())
    }

    /// Ends it, whether it runs or not.
    pub fn end(&mut self) {
        self.leash.end();
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        self.end();
    }
}
