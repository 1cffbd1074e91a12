//! `consort realtime-kit`: the process through which a server asks RealtimeKit for priorities.

use std::process::ExitCode;

use clap::Args;

/// Ask RealtimeKit for the priorities that standard input names (started by the server itself)
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:
  echo PROCESS THREAD PRIORITY | consort realtime-kit"
)]
pub(crate) struct AskRealtimeKit {}

impl AskRealtimeKit {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // A server that root starts starts this before it gives up root's rights.
        let _ = sys::process::drop_rights(false);
        crate::realtime_kit::ask()
    }
}
