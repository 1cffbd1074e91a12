//! `cargo xtask release --dry-run [--compare] [--without-devices]`: all that has to hold before a
//! version is tagged.
//!
//! With `--compare`, the packages are built twice, and compared. With `--without-devices`, the
//! suites of virtual machines with sound cards are reported as not run. Nothing outside of
//! `target/` changes. What is left for a person is printed at the end.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{cargo, root};
use crate::{bill, deb, deny, links, test, width};

/// Where the packages and the bill of materials go.
const OUT: &str = "target/release-rehearsal";

/// Rehearses the release of the version that `Cargo.toml` names: tries every check, whatever came
/// of the others.
///
/// # Errors
/// If a check does not hold; what is missing has been printed with it.
pub fn run(arguments: &[String]) -> Result<()> {
    let Options { compare, with_devices } = Options::of(arguments)?;
    let compare: &[&str] = if compare { &["--compare"] } else { &[] };
    let version = workspace_version(&read("Cargo.toml")?)?;
    let tag = format!("v{version}");
    let out = root().join(OUT);
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let checks: [Check<'_>; 9] = [
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
            let packages = out.join("packages");
            deb::run(&words(&[&["--out", &packages.to_string_lossy()], compare].concat()))?;
            deb::expect_all(&packages)
        }),
        // Other test runs install what is built with less optimization, on one Debian.
        ("what is installed works, as it is released, on each system that is named", &|| {
            let suites = ["--test", "installed", "--test", "packages"];
            let all = ["--", "--include-ignored", "--test-threads=1"];
            cargo(&[&["test", "--package", "consort-tests"][..], &suites, &all].concat())
        }),
        (DEVICES, &test::devices),
    ];
    let mut missing = 0;
    for (what, check) in checks {
        println!("release {version}: {what}");
        if what == DEVICES && !with_devices {
            println!("  not run: {WITHOUT_DEVICES}");
        } else if let Err(error) = check() {
            println!("  not yet: {error:#}");
            missing += 1;
        }
    }
    ensure!(missing == 0, "{missing} checks do not hold: see 'not yet' above");
    println!("{}", what_is_left(&version, with_devices));
    Ok(())
}

/// Says what a person has to do when every check that was run holds.
fn what_is_left(version: &str, with_devices: bool) -> String {
    let not_run =
        if with_devices { "" } else { " and cargo xtask test-devices, which was not run" };
    format!(
        "release {version}: ready. After .ci/run, cargo xtask soak --minutes 60{not_run}:\n  git \
         tag --sign v{version}\n  git push origin v{version}"
    )
}

/// The check that boots virtual machines, and what leaves it out.
const DEVICES: &str = "sound cards, in virtual machines";
const WITHOUT_DEVICES: &str = "--without-devices";

/// What is rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Options {
    compare: bool,
    with_devices: bool,
}

impl Options {
    fn of(arguments: &[String]) -> Result<Self> {
        let mut options = Self { compare: false, with_devices: true };
        let (dry_run, rest) = arguments.split_first().unzip();
        let is_known = rest.unwrap_or_default().iter().all(|argument| match argument.as_str() {
            "--compare" => !std::mem::replace(&mut options.compare, true),
            WITHOUT_DEVICES => std::mem::replace(&mut options.with_devices, false),
            _ => false,
        });
        ensure!(
            dry_run.is_some_and(|word| word == "--dry-run") && is_known,
            "releases are tagged by hand; this rehearses one: release --dry-run [--compare] \
             [{WITHOUT_DEVICES}]"
        );
        Ok(options)
    }
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
    fn what_is_left_out_of_a_rehearsal_is_named() {
        let of = |line: &str| {
            Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).ok()
        };
        let options = |compare, with_devices| Some(Options { compare, with_devices });
        assert_eq!(of("--dry-run"), options(false, true));
        assert_eq!(of("--dry-run --without-devices --compare"), options(true, false));
        for wrong in ["", "--compare", "--dry-run --dry-run", "--dry-run --compare --compare"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!(!what_is_left("1.2.3", true).contains("test-devices"));
        assert!(what_is_left("1.2.3", false).contains("test-devices, which was not run"));
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
