//! A program is built with the packages, as users build one.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::built::{development_package, wide_packages};
use super::debian::{Booted, Debian, Machine};
use super::install;

/// The program, in the machine.
const PROGRAM: &str = "/opt/tone";

/// In the machine, where libraries of its architecture are.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

/// It takes headers, flags and the library from the package, which then goes again, and its
/// dependency is on either JACK.
pub(crate) fn expect_build(debian: &Debian) {
    debian.take(&[development_package().to_owned()]);
    debian.run(&install("")).expect_success();
    let mut compiler = Command::new("gcc");
    compiler.args(["-std=gnu11", "-O2"]).arg(root().join("crates/jack/examples/tone.c"));
    compiler.args(flags(debian)).arg("-lm").arg("-o").arg(debian.path(PROGRAM));
    assert!(compiler.status().expect("gcc runs").success(), "{compiler:?}");
    debian.run("apt-get purge --yes libjack-consort-dev").expect_success();
    let linked = debian.run(&format!("ldd {PROGRAM}")).expect_success().stdout;
    assert!(linked.contains(&format!("libjack.so.0 => {LIBRARIES}/consort/")), "{linked}");
    expect_dependency(&debian.path(PROGRAM));
}

/// What pkg-config says of the machine, for a compiler outside of it.
fn flags(debian: &Debian) -> Vec<String> {
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", "jack"])
        .env("PKG_CONFIG_LIBDIR", debian.path(LIBRARIES).join("pkgconfig"))
        .env("PKG_CONFIG_SYSROOT_DIR", debian.path("/"))
        .env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")
        .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
        .output();
    let output = output.expect("pkg-config runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let flags = String::from_utf8(output.stdout).expect("text");
    let headers = format!("-I{} ", debian.path("/usr/include").display());
    assert!(flags.contains(&headers), "{headers}: {flags}");
    flags.split_whitespace().map(str::to_owned).collect()
}

/// A package of the program may be installed with Debian's libraries as well as with ours.
fn expect_dependency(program: &Path) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let content = directory.path().join("content");
    let library = wide_packages().into_iter().find(|package| is_library(package));
    let mut dpkg_deb = Command::new("dpkg-deb");
    dpkg_deb.arg("--raw-extract").arg(library.expect("its package")).arg(&content);
    assert!(dpkg_deb.status().expect("dpkg-deb runs").success());
    let mut computed = Command::new("dpkg-shlibdeps");
    computed.arg("-O").arg(format!("-S{}", content.display()));
    computed.arg(format!("-l{}{LIBRARIES}/consort", content.display()));
    // It reads debian/control.
    let computed = computed.arg(program).current_dir(root()).output().expect("dpkg-dev has it");
    let dependencies = String::from_utf8_lossy(&computed.stdout);
    assert!(
        dependencies.contains("libjack-consort0 (>= 0.1.0) | libjack-0.125"),
        "{dependencies}{}",
        String::from_utf8_lossy(&computed.stderr)
    );
}

fn is_library(package: &Path) -> bool {
    package.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libjack-consort0_"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the tree").to_owned()
}

/// It plays in the server's graph.
pub(crate) fn expect_sound(booted: &Booted) {
    let played = booted.user(&format!("{PROGRAM} 440 0.1")).expect_success().stdout;
    assert!(played.contains("tone plays to "), "{played}");
    booted.user("consort stop").expect_success();
}
