//! Further processes of this same program.

use std::fs::{Metadata, metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The kernel's link to the file that the calling process runs.
const RUNNING: &str = "/proc/self/exe";

/// Returns the file of this program, to be run once more.
///
/// That is its path, unless an upgrade has replaced or removed what is there since this process
/// began: another release would be refused by this one's server.
///
/// # Errors
/// The program's own file is not known.
pub fn own_file() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let identity = |found: Metadata| (found.dev(), found.ino());
    let running = metadata(RUNNING).map(identity)?;
    let is_replaced = metadata(&path).map(identity).ok() != Some(running);
    Ok(if is_replaced { PathBuf::from(RUNNING) } else { path })
}

/// Returns a command that runs this program as `consort`, without arguments yet.
///
/// # Errors
/// The program's own file is not known.
pub fn own_program() -> io::Result<Command> {
    let unknown =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot find own file: {error}"));
    let mut command = Command::new(own_file().map_err(unknown)?);
    command.arg0("consort");
    Ok(command)
}
