//! Further processes of this same program.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

/// Returns a command that runs this program as `consort`, without arguments yet.
///
/// # Errors
/// The program's own file is not known.
pub fn own_program() -> anyhow::Result<Command> {
    let mut command =
        Command::new(std::env::current_exe().context("cannot find consort's own file")?);
    command.arg0("consort");
    Ok(command)
}
