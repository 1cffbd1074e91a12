//! `cargo xtask deb [--out DIR] [--compare]`: the Debian packages, as `debian/` describes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::root;
use crate::{compare, narrow, succeed};

/// Where the packages go, unless another directory is named.
const OUT: &str = "target/deb";

/// Builds the packages and has lintian judge them; with `--compare` twice, and compares them.
///
/// # Errors
/// If a package cannot be built, breaks Debian's policy, or differs from one build to the other.
pub fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (is_compared, words) = match words.split_last() {
        Some((&"--compare", others)) => (true, others.to_vec()),
        _ => (false, words),
    };
    let out = match words[..] {
        [] => root().join(OUT),
        ["--out", directory] => std::path::absolute(directory)?,
        _ => bail!("say where to, or nothing: deb [--out DIR] [--compare]"),
    };
    if is_compared { compare::run(&out) } else { build(&out) }
}

/// Builds the packages into a directory, in place of those that are there.
pub(crate) fn build(out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    for package in packages(out)? {
        fs::remove_file(&package)
            .with_context(|| format!("cannot remove {}", package.display()))?;
    }
    rules("clean binary", None, out)?;
    if narrow::is_available() {
        rules("clean binary", Some(narrow::ARCHITECTURE), out)?;
    } else {
        eprintln!("no package for programs of 32 bits: docs/needs.md says what it takes");
    }
    let packages = packages(out)?;
    succeed(Command::new("lintian").args(["--fail-on", "error", "--allow-root"]).args(&packages))?;
    rules("clean", None, out)?;
    for package in packages {
        println!("{}", package.display());
    }
    Ok(())
}

/// Runs targets of `debian/rules`, for this machine's architecture or another.
fn rules(targets: &str, architecture: Option<&str>, out: &Path) -> Result<()> {
    let mut rules = Command::new("dpkg-architecture");
    rules.args(architecture.into_iter().flat_map(|name| ["--host-arch", name]));
    rules.args(["--command", &format!("debian/rules {targets}")]);
    rules.current_dir(root()).env("CONSORT_DEB", out);
    succeed(&mut rules).context("the packages need debhelper: sh xtask/setup/debian.sh")
}

/// The packages in a directory, in the order of their names.
pub(crate) fn packages(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether a directory has all packages, that for programs of 32 bits included.
///
/// # Errors
/// If one is missing: the message names it.
pub(crate) fn expect_all(directory: &Path) -> Result<()> {
    let control = fs::read_to_string(root().join("debian/control"))?;
    let missing = missing(&control, &packages(directory)?);
    ensure!(
        missing.is_empty(),
        "{} was not built: docs/needs.md says what it takes",
        missing.join(", ")
    );
    Ok(())
}

/// The packages that are to be built and were not: those that `debian/control` describes, and that
/// for programs of 32 bits.
fn missing(control: &str, built: &[PathBuf]) -> Vec<String> {
    let narrow = format!("{}:{}", narrow::PACKAGE, narrow::ARCHITECTURE);
    let described = control.lines().filter_map(|line| line.strip_prefix("Package: "));
    let built: Vec<String> = names(built).iter().filter_map(|name| package(name)).collect();
    let expected = described.map(str::to_owned).chain([narrow]);
    expected.filter(|package| !built.contains(package)).collect()
}

/// What apt calls the package of a file's name: `name_version_architecture.deb`.
fn package(file: &str) -> Option<String> {
    let (name, rest) = file.split_once('_')?;
    let is_narrow = rest.ends_with(&format!("_{}.deb", narrow::ARCHITECTURE));
    Some(if is_narrow { format!("{name}:{}", narrow::ARCHITECTURE) } else { name.to_owned() })
}

/// The names of files.
pub(crate) fn names(packages: &[PathBuf]) -> Vec<String> {
    let names = packages.iter().filter_map(|path| path.file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_were_not_built_are_named() {
        let control = "Source: consort\n\nPackage: consort\n\nPackage: libjack-consort0\n";
        let files = ["consort_1_all", "libjack-consort0_1_amd64", "libjack-consort0_1_i386"];
        let files = files.map(|name| PathBuf::from(format!("/out/{name}.deb")));
        assert_eq!(missing(control, &files), [""; 0]);
        assert_eq!(missing(control, &files[..2]), ["libjack-consort0:i386"]);
        assert_eq!(missing(control, &files[1..]), ["consort"]);
        assert_eq!(missing(control, &[&files[..1], &files[2..]].concat()), ["libjack-consort0"]);
    }
}
