//! A program of 32 bits, with the library of its architecture beside that of the server.

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::not_run;

use super::debian::{Booted, Debian, Machine};

const COMPILER: &str = "i686-linux-gnu-gcc";

/// Whether a package is one of 32 bits.
pub(crate) fn is_narrow(package: &Path) -> bool {
    package.to_string_lossy().ends_with("_i386.deb")
}

/// Installs the library's package beside that of 64 bits, and a program that was linked with it.
/// Nothing if there is no such package: this machine could not build it.
pub(crate) fn install(debian: &Debian, package: Option<&PathBuf>) {
    let Some(package) = package else {
        not_run("there is no package for programs of 32 bits: docs/needs.md says what it takes");
        return;
    };
    debian.take(std::slice::from_ref(package));
    let script = "dpkg --add-architecture i386; apt-get update --quiet=2; \
                  apt-get install --quiet=2 --yes --no-install-recommends /opt/packages/*_i386.deb";
    debian.run(script).expect_success();
    let content = tempfile::tempdir().expect("a temporary directory");
    let mut dpkg_deb = Command::new("dpkg-deb");
    dpkg_deb.arg("--extract").arg(package).arg(content.path());
    assert!(dpkg_deb.status().expect("dpkg-deb runs").success());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the tree");
    let mut compiler = Command::new(COMPILER);
    compiler.args(["-std=gnu11", "-O2", "-I"]).arg(root.join("crates/jack/include"));
    compiler.arg(root.join("crates/jack/examples/tone.c"));
    compiler.arg(content.path().join("usr/lib/i386-linux-gnu/consort/libjack.so.0"));
    compiler.args(["-lm", "-o"]).arg(debian.path(PROGRAM));
    assert!(compiler.status().expect("the compiler runs").success());
}

const PROGRAM: &str = "/opt/tone-of-32-bits";

/// It finds its library by itself, and plays in the server's graph.
pub(crate) fn expect_sound(debian: &Debian, booted: &Booted) {
    if !debian.path(PROGRAM).exists() {
        return;
    }
    let played = booted.user(&format!("{PROGRAM} 440 0.1")).expect_success().stdout;
    assert!(played.contains("tone plays to "), "{played}");
    let examined = booted.user("consort doctor").stdout;
    let found = "/usr/lib/i386-linux-gnu/consort/libjack.so.0, for programs of 32 bits\n";
    assert!(examined.contains(found), "{examined}");
    booted.user("consort stop").expect_success();
}
