//! `cargo xtask release --dry-run [--compare]`: all that has to hold before a version is tagged.
//!
//! With `--compare`, the packages are built twice, and compared. Nothing outside of `target/`
//! changes. What is left for a person are two commands, printed at the end.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{cargo, root};
use crate::{bill, deb, deny, links, width};

/// Where the packages and the bill of materials go.
const OUT: &str = "target/release-rehearsal";

/// Rehearses the release of the version that `Cargo.toml` names: tries every check, whatever came
/// of the others.
///
/// # Errors
/// If a check does not hold; what is missing has been printed with it.
pub fn run(arguments: &[String]) -> Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let compare = match arguments[..] {
        ["--dry-run"] => &[][..],
        ["--dry-run", "--compare"] => &["--compare"],
        _ => {
            bail!("releases are tagged by hand; this rehearses one: release --dry-run [--compare]")
        }
    };
    let version = workspace_version(&read("Cargo.toml")?)?;
    let tag = format!("v{version}");
    let out = root().join(OUT);
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let checks: [Check<'_>; 8] = [
        ("CHANGELOG.md has a section of the version", &|| {
            check_changelog(&read("CHANGELOG.md")?, &version)
        }),
        ("debian/changelog has an entry of the version", &|| {
            check_debian(&read("debian/changelog")?, &version)
        }),
        ("everything is committed, and the version is new", &|| check_commit(&tag)),
        ("documents", &|| width::run().and_then(|()| links::run())),
        ("licences and advisories of everything that is linked", &deny::run),
        ("a bill of materials", &|| {
            bill::run(&words(&["--out", &out.join("consort.cdx.json").to_string_lossy()]))
        }),
        ("packages", &|| {
            let packages = out.join("packages").to_string_lossy().into_owned();
            deb::run(&words(&[&["--out", &packages], compare].concat()))
        }),
        // Other test runs install what is built with less optimization.
        ("what is installed works, as it is released", &|| {
            let suites = ["--test", "installed", "--test", "packages"];
            cargo(&[&["test", "--package", "consort-tests"][..], &suites].concat())
        }),
    ];
    let mut missing = 0;
    for (what, check) in checks {
        println!("release {version}: {what}");
        if let Err(error) = check() {
            println!("  not yet: {error:#}");
            missing += 1;
        }
    }
    ensure!(missing == 0, "{missing} checks do not hold: see 'not yet' above");
    println!(
        "release {version}: ready. After .ci/run, cargo xtask soak --minutes 60 and cargo xtask \
         test-devices:\n  git tag --sign {tag}\n  git push origin {tag}"
    );
    Ok(())
}

/// What is checked, and the check.
type Check<'a> = (&'static str, &'a dyn Fn() -> Result<()>);

fn read(name: &str) -> Result<String> {
    fs::read_to_string(root().join(name)).with_context(|| format!("cannot read {name}"))
}

/// The newest commit is what would be released, and no version of this name was.
fn check_commit(tag: &str) -> Result<()> {
    ensure!(git(&["status", "--porcelain"])?.is_empty(), "commit or remove what git status lists");
    ensure!(git(&["tag", "--list", tag])?.is_empty(), "{tag} is released: raise the version");
    Ok(())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output();
    let output = output.context("git does not start")?;
    ensure!(output.status.success(), "git {} failed: {}", arguments.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the version below `[workspace.package]`.
fn workspace_version(manifest: &str) -> Result<String> {
    let section = manifest.split("\n[").find(|part| part.starts_with("workspace.package]"));
    let lines = section.context("Cargo.toml has no [workspace.package]")?.lines();
    let version = lines.filter_map(|line| line.strip_prefix("version = ")).next();
    Ok(version.context("[workspace.package] has no version")?.trim_matches('"').to_owned())
}

/// The newest section of the changelog is that of the version, with a date.
fn check_changelog(changelog: &str, version: &str) -> Result<()> {
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap_or_default();
    let Some(dated) = newest.strip_prefix(version) else {
        bail!("CHANGELOG.md begins with '{newest}': name the section '{version} (YYYY-MM-DD)'");
    };
    let date = dated.trim().trim_matches(['(', ')']);
    let is_date = date.len() == 10
        && date.split('-').map(str::len).eq([4, 2, 2])
        && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    ensure!(is_date, "CHANGELOG.md: '{newest}' has no date: '{version} (YYYY-MM-DD)'");
    Ok(())
}

/// The newest entry of Debian's changelog is that of the version, with any revision of the package.
fn check_debian(changelog: &str, version: &str) -> Result<()> {
    let entry = changelog.lines().next().unwrap_or_default();
    let named = entry.split(['(', ')']).nth(1).unwrap_or_default();
    let upstream = named.rsplit_once('-').map_or(named, |(upstream, _revision)| upstream);
    ensure!(
        upstream == version,
        "debian/changelog begins with '{entry}': add an entry for {version} (dch -v {version})"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_workspaces_own() {
        let manifest =
            "[workspace]\n\n[workspace.package]\nversion = \"1.2.3\"\n\n[x]\nversion = 9";
        assert_eq!(workspace_version(manifest).unwrap(), "1.2.3");
        assert!(workspace_version("[workspace.dependencies]\nversion = \"1.2.3\"\n").is_err());
    }

    #[test]
    fn a_changelog_begins_with_the_version_and_its_date() {
        let begins = |line: &str| check_changelog(&format!("# Changelog\n\n{line}\n"), "1.2.3");
        assert!(begins("## 1.2.3 (2026-11-25)").is_ok());
        for wrong in ["## Unreleased", "## 1.2.3", "## 1.2.3 (soon)", "## 1.2.30 (2026-11-25)", ""]
        {
            assert!(begins(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn debians_changelog_names_the_version_with_any_revision() {
        for (version, is_right) in [("1.2.3", true), ("1.2.3-2", true), ("1.2.4", false)] {
            let entry = format!("consort ({version}) unstable; urgency=medium\n");
            assert_eq!(check_debian(&entry, "1.2.3").is_ok(), is_right, "{version}");
        }
    }
}
