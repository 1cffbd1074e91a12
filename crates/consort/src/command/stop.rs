//! `consort stop`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use sys::process::PidFd;

use crate::attach;
use crate::server::Server;

/// Time limit for an orderly end.
const END_TIMEOUT_S: u64 = 10;

/// Stop the server, and wait until it has ended
#[derive(Debug, Args)]
#[command(after_help = "Example:
  consort stop -n studio")]
pub(crate) struct Stop {}

impl Stop {
    pub(crate) fn run(self, name: &str) -> anyhow::Result<ExitCode> {
        let server = attach::to(name)?;
        let process = server.status()?.process;
        // Opened before the request: afterwards the id could be another process's. A server in
        // another pid namespace cannot be waited for.
        let process = PidFd::open(process).ok();
        server.stop()?;
        let deadline_ns = sys::clock::now_ns() + END_TIMEOUT_S * 1_000_000_000;
        if let Some(process) = process
            && !process.wait_until(Some(deadline_ns)).context("cannot wait for the server")?
        {
            bail!("server '{name}' was asked to stop and is still running after {END_TIMEOUT_S} s");
        }
        Ok(ExitCode::SUCCESS)
    }
}
