//! `consort reserve`: the process through which a server reserves a card.

use std::process::ExitCode;

use clap::Args;
use proto::defaults::RESERVE_PRIORITY;

/// Reserve a sound card on the session bus, against other sound servers (started by the server
/// itself)
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:
  consort reserve 0"
)]
pub(crate) struct Reserve {
    /// The card's number
    card: u32,
    /// Priority: a program that asks with a higher one gets the card
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = RESERVE_PRIORITY)]
    priority: i32,
}

impl Reserve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // A server that root starts starts this before it gives up root's rights.
        let _ = sys::process::drop_rights(false);
        crate::reservation::keep(self.card, self.priority)
    }
}
