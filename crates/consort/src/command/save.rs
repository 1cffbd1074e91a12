//! `consort save` and `consort restore`: the state of a server in a file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cli::output::{self, is_standard};
use client::Observer;
use observe::Unlisted;

use crate::exit;

/// Save connections, aliases, properties, volumes, transport and quantum to a file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort save song.json
  consort save - | jq .connections")]
pub(crate) struct Save {
    /// The file, replaced as a whole; -: standard output
    file: PathBuf,
}

impl Save {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let state = observe::save(&Observer::open(Some(server))?)?;
        if is_standard(&self.file) {
            output::print(&state.to_text())?;
        } else {
            state::write(&self.file, &state)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Restore what a file contains, as far as possible, and print what could not be restored
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort restore song.json
  consort restore --exact song.json
  ssh studio consort save - | consort restore -")]
pub(crate) struct Restore {
    /// A file that 'consort save' or 'consort run --state' has written; -: standard input
    file: PathBuf,
    /// Remove the connections that the file does not have
    #[arg(long)]
    exact: bool,
}

impl Restore {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        // A file that is not a state changes nothing.
        let state = if is_standard(&self.file) {
            state::read_from(std::io::stdin().lock(), Path::new("standard input"))?
        } else {
            state::read(&self.file)?
        };
        let unlisted = if self.exact { Unlisted::Disconnect } else { Unlisted::Keep };
        let failures = observe::restore(&Observer::open(Some(server))?, &state, unlisted)?;
        let lines = failures.iter().map(|failure| format!("consort: not restored: {failure}\n"));
        // Standard error may be closed, which changes nothing about the outcome.
        let _ = std::io::stderr().write_all(lines.collect::<String>().as_bytes());
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::REFUSED) })
    }
}
