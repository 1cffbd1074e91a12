//! Running other programs from the root of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// Runs cargo, with its output shown.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, &[])
}

/// Runs cargo with more environment.
pub fn cargo_with(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let status = cargo_command(arguments, environment).status().context("cargo does not start")?;
    ensure!(status.success(), "cargo {} failed: {status}", arguments.join(" "));
    Ok(())
}

/// A command that runs cargo with more environment; prints its words.
pub fn cargo_command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    eprintln!("xtask: cargo {}", arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(root());
    command
}

/// The target triple of this machine, as the compiler names it.
pub fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say for which machine it compiles")?.into())
}

/// Paths of the repository's files, relative to its root; new ones too, unless git ignores them.
pub fn tracked_files() -> Result<Vec<PathBuf>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .context("git does not start")?;
    ensure!(listing.status.success(), "git ls-files failed: {}", listing.status);
    let listing = String::from_utf8(listing.stdout).context("a file's name is not UTF-8")?;
    let present = |path: &PathBuf| root().join(path).exists();
    Ok(listing.split_terminator('\0').map(PathBuf::from).filter(present).collect())
}
