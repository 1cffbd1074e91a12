//! `cargo xtask tarball [--out DIR]`: consort for systems without packages, with an install script.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::root;
use crate::{bill, install, notices, succeed};

/// Where the archive goes, unless another directory is named.
const OUT: &str = "target/tarball";

/// Lays consort out in a directory, and packs it: the same bytes for the same commit.
///
/// # Errors
/// If it cannot be built, laid out or packed.
pub fn run(arguments: &[String]) -> Result<()> {
    let out = match arguments {
        [] => root().join(OUT),
        [option, directory] if option == "--out" => std::path::absolute(directory)?,
        _ => bail!("say where to, or nothing: tarball [--out DIR]"),
    };
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("consort-{version}-{}-linux", std::env::consts::ARCH);
    let tree = out.join(&name);
    match fs::remove_dir_all(&tree) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", tree.display()));
        }
        _ => {}
    }
    install::run(&["--prefix".into(), tree.to_string_lossy().into_owned()])?;
    let bill = tree.join("share/doc/consort/consort.cdx.json");
    fs::create_dir_all(bill.parent().unwrap_or(&tree))?;
    bill::run(&["--out".into(), bill.to_string_lossy().into_owned()])?;
    let notices = bill.with_file_name("third-party-notices.txt");
    notices::run(&["--out".into(), notices.to_string_lossy().into_owned()])?;
    for (from, to) in [
        ("xtask/tarball/install", "install"),
        ("docs/needs.md", "NEEDS"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("LICENSE-MIT", "LICENSE-MIT"),
    ] {
        fs::copy(root().join(from), tree.join(to))
            .with_context(|| format!("cannot copy {from}"))?;
    }
    let archive = out.join(format!("{name}.tar.xz"));
    pack(&out, &name, &archive)?;
    println!("{}", archive.display());
    Ok(())
}

/// Packs the directory `name` in `out`, without the times, owners and order that differ from one
/// machine to another.
fn pack(out: &Path, name: &str, archive: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--xz", "--sort=name", "--mtime=@0", "--owner=0", "--group=0"])
        .args(["--numeric-owner", "--mode=go+u,go-w"])
        .arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(out)
        .arg(name);
    succeed(&mut tar)
}
