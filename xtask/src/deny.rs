//! `cargo xtask deny`: licences, known faults, duplicates and sources of what consort builds on.
//!
//! cargo-deny judges by `deny.toml`. It reads advisories from a clone of RustSec's database; those
//! about crates that consort uses are kept in `xtask/advisories`, and made into such a clone here,
//! so that the check says the same with and without a network.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{cargo, root};
use crate::succeed;

/// The version that is installed where there is none.
const VERSION: &str = "0.20.2";

/// Where cargo-deny looks for the clone of RustSec's database, below `db-path` of `deny.toml`: it
/// names the directory after the database's address.
const DATABASE: &str = "target/advisories/advisory-db-3157b0e258782691";

/// The kept advisories, and when they were taken.
const KEPT: &str = "xtask/advisories";
const TAKEN: &str = "2026-08-21T08:28:40+0200";

/// Checks every dependency of the workspace; installs cargo-deny first if there is none.
///
/// # Errors
/// If a dependency breaks a rule of `deny.toml`.
pub fn run() -> Result<()> {
    if !is_installed() {
        // It runs for seconds: an optimized build takes longer than it gains.
        cargo(&["install", "cargo-deny", "--debug", "--locked", "--quiet", "--version", VERSION])?;
    }
    build_database().context("the database of advisories could not be built")?;
    cargo(&["fetch", "--locked", "--quiet"])?;
    cargo(&["deny", "--offline", "--locked", "--log-level", "error", "check", "--show-stats"])
}

fn is_installed() -> bool {
    let version = Command::new("cargo").args(["deny", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// A git repository with one commit: cargo-deny asks git how old the database is.
fn build_database() -> Result<()> {
    let database = root().join(DATABASE);
    if database.exists() {
        fs::remove_dir_all(&database)?;
    }
    let kept = root().join(KEPT);
    for package in kept.join("crates").read_dir()? {
        let package = package?;
        let directory = database.join("crates").join(package.file_name());
        fs::create_dir_all(&directory)?;
        for advisory in package.path().read_dir()? {
            let advisory = advisory?;
            fs::copy(advisory.path(), directory.join(advisory.file_name()))?;
        }
    }
    git(&database, &["init", "--quiet"])?;
    git(&database, &["add", "."])?;
    git(&database, &["commit", "--quiet", "--message", "RustSec's advisories"])
}

fn git(directory: &Path, arguments: &[&str]) -> Result<()> {
    let identity = ["-c", "user.name=xtask", "-c", "user.email=xtask@localhost"];
    let mut command = Command::new("git");
    command.args(identity).args(arguments).current_dir(directory);
    succeed(command.env("GIT_AUTHOR_DATE", TAKEN).env("GIT_COMMITTER_DATE", TAKEN))
}
