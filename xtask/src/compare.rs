//! `cargo xtask deb --compare`: the packages are built twice, in different directories and with
//! different settings of the user, and are the same, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{root, tracked_files};
use crate::{deb, narrow, succeed};

/// Where the second build is made, below `target`. Its name is of another length than that of any
/// usual directory, and ends up in nothing.
const ELSEWHERE: &str = "target/another-directory-for-the-second-build/consort";

/// What the second build's user has set, and the first one's has not.
const SETTINGS: [(&str, &str); 3] =
    [("TZ", "Asia/Kathmandu"), ("LC_ALL", "C"), ("USER", "somebody-else")];

/// Builds the packages into `out`, and once more elsewhere.
///
/// # Errors
/// If one of them cannot be built, that for programs of 32 bits included, or if they differ: the
/// message names them.
pub fn run(out: &Path) -> Result<()> {
    // Known before the first build, which takes minutes.
    ensure!(
        narrow::is_available(),
        "all packages are compared, and this machine cannot build that for programs of 32 bits: \
         docs/needs.md says what it takes"
    );
    deb::build(out)?;
    deb::expect_all(out)?;
    let elsewhere = root().join(ELSEWHERE);
    copy_sources(&elsewhere)?;
    // Compiles this program once more: it builds where it was compiled.
    let second = elsewhere.join("packages");
    let mut build = Command::new("sh");
    build
        .args(["-c", "umask 027 && exec cargo run --quiet --package xtask -- deb --out \"$0\""])
        .arg(&second)
        .current_dir(&elsewhere)
        .env("CARGO_TARGET_DIR", elsewhere.join("target"))
        .envs(SETTINGS);
    succeed(&mut build)?;
    let compared = compare(&deb::packages(out)?, &deb::packages(&second)?)?;
    println!("the same in two builds, byte for byte: {}", compared.join(", "));
    fs::remove_dir_all(elsewhere.parent().context("it lies in a directory")?)?;
    Ok(())
}

/// Copies what git knows of into a new directory.
fn copy_sources(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", directory.display()));
        }
        _ => {}
    }
    for file in tracked_files()? {
        let to = directory.join(&file);
        fs::create_dir_all(to.parent().unwrap_or(directory))?;
        fs::copy(root().join(&file), &to)
            .with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(())
}

/// Returns their names, if each has a counterpart of the same name and bytes.
fn compare(first: &[PathBuf], second: &[PathBuf]) -> Result<Vec<String>> {
    ensure!(!first.is_empty(), "there are no packages to compare");
    ensure!(
        deb::names(first) == deb::names(second),
        "two builds made other packages: {first:?}, {second:?}"
    );
    let mut different = Vec::new();
    for (one, other) in first.iter().zip(second) {
        if fs::read(one)? != fs::read(other)? {
            different.push(format!("{} and {}", one.display(), other.display()));
        }
    }
    if !different.is_empty() {
        bail!("two builds differ (diffoscope shows how): {}", different.join(", "));
    }
    Ok(deb::names(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_of_one_package_is_a_difference() {
        let place = std::env::temp_dir().join(format!("consort-compare-{}", std::process::id()));
        let packages = |build: &str, content: [&[u8]; 2]| -> Vec<PathBuf> {
            let directory = place.join(build);
            fs::create_dir_all(&directory).expect("a directory");
            for (name, bytes) in ["a.deb", "b.deb"].iter().zip(content) {
                fs::write(directory.join(name), bytes).expect("written");
            }
            deb::packages(&directory).expect("listed")
        };
        let first = packages("first", [b"one", b"two"]);
        let same = packages("same", [b"one", b"two"]);
        let other = packages("other", [b"one", b"twp"]);
        assert_eq!(compare(&first, &same).expect("the same"), ["a.deb", "b.deb"]);
        let difference = compare(&first, &other).expect_err("another").to_string();
        assert!(difference.contains("b.deb") && !difference.contains("a.deb"), "{difference}");
        assert!(compare(&first, &same[1..]).is_err(), "one is missing");
        assert!(compare(&[], &[]).is_err(), "nothing was compared");
        fs::remove_dir_all(&place).expect("removed");
    }
}
