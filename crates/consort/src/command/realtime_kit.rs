//! `consort realtime-kit`: a process of the server's, which has priorities given to threads.

use std::process::ExitCode;

use clap::Args;

/// Ask RealtimeKit for the priorities that standard input names, for a server, which starts this
/// itself
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:
  echo PROCESS THREAD PRIORITY | consort realtime-kit"
)]
pub(crate) struct AskRealtimeKit {}

impl AskRealtimeKit {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        crate::realtime_kit::ask()
    }
}
