//! `consort reserve`: a process of the server's, which keeps a card from others.

use std::process::ExitCode;

use clap::Args;

/// Keep a sound card from other sound servers on the session bus, for a server, which starts this
/// itself
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:
  consort reserve 0"
)]
pub(crate) struct Reserve {
    /// The card's number
    card: u32,
}

impl Reserve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        crate::reservation::keep(self.card)
    }
}
