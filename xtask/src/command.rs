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
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    eprintln!("xtask: cargo {}", arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(root());
    let status = command.status().context("cargo does not start")?;
    ensure!(status.success(), "cargo {} failed: {status}", arguments.join(" "));
    Ok(())
}
