//! `consort connect`.

use std::process::ExitCode;

use clap::Args;

use crate::attach;
use crate::server::Server;

/// Connect an output port to an input port
#[derive(Debug, Args)]
#[command(after_help = "Example:
  consort connect synth:left system:playback_1")]
pub(crate) struct Connect {
    /// Name or alias of the output port
    source: String,
    /// Name or alias of the input port
    destination: String,
}

impl Connect {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        attach::to(server)?.connect(&self.source, &self.destination)?;
        Ok(ExitCode::SUCCESS)
    }
}
