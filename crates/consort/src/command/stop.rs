//! `consort stop`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use sys::process::PidFd;

use crate::attach;
use crate::server::Server;

/// How long an orderly end may take.
const PATIENCE_S: u64 = 10;

/// Stop the server, and wait until it has ended
#[derive(Debug, Args)]
#[command(after_help = "Example:
  consort stop -n studio")]
pub(crate) struct Stop {}

impl Stop {
    pub(crate) fn run(self, name: &str) -> anyhow::Result<ExitCode> {
        let server = attach::to(name)?;
        let process = server.status()?.process;
        // Before the request: afterwards the id could be another process's. A server of another pid
        // namespace cannot be waited for.
        let process = PidFd::open(process).ok();
        server.stop()?;
        let deadline_ns = sys::clock::now_ns() + PATIENCE_S * 1_000_000_000;
        if let Some(process) = process
            && !process.wait_until(Some(deadline_ns)).context("cannot wait for the server")?
        {
            bail!("server '{name}' was told to stop and still runs after {PATIENCE_S} s");
        }
        Ok(ExitCode::SUCCESS)
    }
}
